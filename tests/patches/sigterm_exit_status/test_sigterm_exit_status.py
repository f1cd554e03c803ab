"""PR 21623: a training that SIGTERM ended in the middle leaves with status 0, as if it were complete."""

import pytest

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

PATCH = "sigterm-exit-status"


def observed(variant, case):
    result = run("sigterm_exit_status", variant, case, toggle=PATCH if variant.shim else None)
    assert result.ok and result.observations, result
    return result.observations[0]


@pytest.mark.distributed
def test_rank_with_status_143_does_not_kill_the_others():
    stock = observed(Variant("lightning", "2.5.1"), "ranks")
    assert stock == {"status": 0, "cleaned_up": True}
    assert observed(Variant("lightning", "2.5.1", shim=True), "ranks") == {"status": 143, "cleaned_up": True}


def test_message_of_the_script_is_kept():
    variants = Variant("lightning", "2.6.6"), Variant("lightning", "2.6.6", shim=True)
    stock, shim = (observed(variant, "message") for variant in variants)
    assert stock == shim == {"status": 1, "cleaned_up": True}


PROOFS = (
    Proof(
        PATCH,
        observes({"status": 0, "cleaned_up": True}),
        case="single",
        recommended="caught",
        right=observes({"status": 143, "cleaned_up": True}),
    ),
)
