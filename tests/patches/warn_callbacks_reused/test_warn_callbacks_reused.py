import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-callbacks-reused", "2.6.6")


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_each_reused_callback_causes_one_warning(version):
    stock, shim = (result.facts for result in PROGRAM.both("reused", version))
    assert shim["epochs"] == stock["epochs"] < 6
    early, saving = sorted(shim["warnings"])
    assert early.startswith("This EarlyStopping was in another Trainer")
    assert saving.startswith("This ModelCheckpoint was in another Trainer")


test_warning_is_absent_for_fresh_callbacks = PROGRAM.unchanged("new", "same-trainer", "resumed", "reset")
