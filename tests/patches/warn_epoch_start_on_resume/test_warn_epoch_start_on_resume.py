import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-epoch-start-on-resume", "2.6.6", "pytorch-lightning", True, scenario="resume_on_last_batch")


def warns(result):
    return "on_train_epoch_start is not called" in " ".join(result.output.split())


@pytest.mark.parametrize("version", ["2.5.0", "2.6.6"])
def test_warns_and_changes_nothing(version):
    stock, shim = PROGRAM.both("curriculum: within", version)
    assert warns(shim) and not warns(stock)
    assert shim.facts == stock.facts


def test_warning_is_absent_if_no_hook_is_skipped():
    result = PROGRAM.shim("curriculum: epoch end")
    assert result.ok and not warns(result), result
