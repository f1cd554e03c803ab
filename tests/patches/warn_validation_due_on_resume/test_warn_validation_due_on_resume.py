import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-validation-due-on-resume", "2.6.6", "pytorch-lightning", True, scenario="resume_on_last_batch")
DUE = "validated every two batches: within"


def warns(result):
    return "leaves that validation out" in " ".join(result.output.split())


@pytest.mark.parametrize("version", ["2.5.0", "2.6.6"])
def test_warns_and_changes_nothing(version):
    stock, shim = PROGRAM.both(DUE, version)
    assert warns(shim) and not warns(stock)
    assert shim.facts == stock.facts


@pytest.mark.parametrize("case", ["plain: within", DUE])
def test_warning_is_absent_if_no_validation_is_skipped(case):
    result = PROGRAM.shim(case, toggle=f"{PROGRAM.patch},validation-due-on-resume")
    assert result.ok and not warns(result), result
