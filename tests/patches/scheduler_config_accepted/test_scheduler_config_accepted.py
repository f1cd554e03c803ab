"""Issue 18870: configure_optimizers returns an LRSchedulerConfig, and its scheduler is refused."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["dict", "vars", "own", "manual-vars"])
def test_scheduler_that_was_accepted_is_unchanged(case):
    stock, shim = (run("scheduler_config_accepted", Variant("lightning", "2.6.6", on), case) for on in (False, True))
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = tuple(
    Proof(
        "scheduler-config-accepted",
        sees(lambda seen: "'LRSchedulerConfig' object has no attribute" in seen.get("error", "")),
        case=f"{kind}object",
        recommended=f"{kind}dict",
    )
    for kind in ("", "manual-")
)
