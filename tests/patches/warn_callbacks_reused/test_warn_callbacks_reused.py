"""EarlyStopping and ModelCheckpoint objects in a second Trainer begin with the state of the first run."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, shim=True):
    distribution = "pytorch-lightning" if version < "2.1" else "lightning"
    result = run("warn_callbacks_reused", Variant(distribution, version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_each_reused_callback_causes_one_warning(version):
    warned, stock = seen(version, "reused"), seen(version, "reused", shim=False)
    assert warned["epochs"] == stock["epochs"] < 6
    early, saving = sorted(warned["warnings"])
    assert early.startswith("This EarlyStopping was in another Trainer")
    assert saving.startswith("This ModelCheckpoint was in another Trainer")


@pytest.mark.parametrize("case", ["new", "same-trainer", "resumed", "reset"])
def test_warning_is_absent_for_fresh_callbacks(case):
    assert seen("2.6.6", case) == seen("2.6.6", case, shim=False)
