"""PR 17678: two threads that load checkpoints at the same time take away from each other what old ones need."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

CASES = ("model", "context")


def seen(version, case, shim=False):
    result = run("legacy_checkpoint_threads", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.0.2"])
def test_both_are_loaded(version):
    assert seen(version, "model")["found"]["first"].startswith("KeyError: ")
    shim = seen(version, "model", shim=True)
    assert shim == seen("2.0.3", "model")
    assert not any("Error" in value for value in shim["found"].values())


@pytest.mark.parametrize("case", ["fork", "error", "one after the other", "nested"])
def test_loads_without_contention_are_unchanged(case):
    """With 2.0.3 the forked process, and the load within another, wait for ever."""
    stock = seen("2.0.2", case)
    assert seen("2.0.2", case, shim=True) == stock
    if case == "fork":
        assert stock["found"]["child"] == stock["found"]["first"]


FAILS = sees(lambda seen: seen["found"]["first"].startswith("KeyError: "))
LOADS = sees(lambda seen: not any("Error" in value for value in seen["found"].values()) and not seen["left"])
PROOFS = tuple(Proof("legacy-checkpoint-threads", FAILS, case=case, right=LOADS) for case in CASES)
