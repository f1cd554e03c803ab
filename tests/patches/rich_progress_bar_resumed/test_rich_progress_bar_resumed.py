"""PR 21000: RichProgressBar, and a training that is resumed from a checkpoint within an epoch, or at the end of one."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

SECOND_EPOCH = [["Epoch 1/1 ", 4, batch] for batch in (1, 2, 3, 4)]
SHOWN = {"resumed": [["Epoch 0/1 ", 4, 1], ["Epoch 0/1 ", 4, 2], *SECOND_EPOCH], "epoch": SECOND_EPOCH}


def seen(version, case, shim=False):
    result = run("rich_progress_bar_resumed", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", SHOWN)
@pytest.mark.parametrize("version", ["2.5.0", "2.5.2"])
def test_training_continues_with_a_progress_bar(version, case):
    assert seen(version, case) == {"error": "AssertionError", "seen": [], "steps": 3 if case == "resumed" else 5}
    assert seen(version, case, shim=True) == {"error": None, "seen": SHOWN[case], "steps": 8} == seen("2.5.3", case)


@pytest.mark.parametrize("case", ["off", "begun"])
def test_run_without_a_bar_or_from_the_start_is_unchanged(case):
    stock = seen("2.5.2", case)
    assert (stock["error"], stock["steps"], len(stock["seen"])) == (None, 8, 0 if case == "off" else 8)
    assert seen("2.5.2", case, shim=True) == stock


FAILS = sees(lambda seen: seen["error"] == "AssertionError")
PROOFS = tuple(Proof("rich-progress-bar-resumed", FAILS, case=case) for case in SHOWN)
