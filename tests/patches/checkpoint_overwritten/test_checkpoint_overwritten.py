"""PR 19064: ModelCheckpoint alternates between best.ckpt and best-v1.ckpt."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def seen(distribution, version, case="", shim=False):
    result = run("checkpoint_overwritten", Variant(distribution, version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["all", "monitor", "named"])
def test_other_file_names_are_unchanged(case):
    stock = seen("lightning", "2.1.2", case)
    assert stock == seen("lightning", "2.1.2", case, shim=True)
    if case == "all":
        assert stock["seen"][-1] == {"best.ckpt": 2, "best-v1.ckpt": 4, "best-v2.ckpt": 6}


def test_file_that_training_was_resumed_from_is_kept():
    first, *_, last = seen("lightning", "2.1.2", "resumed", shim=True)["seen"][1:]
    assert first["best.ckpt"] == last["best.ckpt"] == 2
    assert set(last.values()) == {2, 8} and len(last) == 2


PROOFS = (Proof("checkpoint-overwritten", sees(lambda seen: "best-v1.ckpt" in seen["seen"][2])),)
