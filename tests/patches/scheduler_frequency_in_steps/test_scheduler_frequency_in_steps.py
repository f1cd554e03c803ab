"""Issue 17544: a scheduler with a frequency of 3 steps, in epochs of 2 steps."""

from tests.equivalence.proof import observes, proofs
from tests.support.variants import Variant, run

NAME = "scheduler-frequency-in-steps"


def test_frequency_that_divides_the_length_of_an_epoch_is_unchanged():
    stock, shim = (
        run("scheduler_frequency_in_steps", Variant("lightning", "2.6.6", shim), "divides", toggle=NAME)
        for shim in (False, True)
    )
    assert stock.ok and stock.observations == shim.observations


PROOFS = proofs(
    NAME,
    observes({"rates": ["1"] * 8}),
    recommended="recommended",
    right=observes({"rates": ["1"] * 3 + ["0.5"] * 3 + ["0.25"] * 2}),
)
