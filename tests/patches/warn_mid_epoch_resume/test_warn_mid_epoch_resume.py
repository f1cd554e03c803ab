import pytest

from lightning_patches.patches import find
from tests.support.programs import Program

PROGRAM = Program("warn-mid-epoch-resume", "2.4.0", "pytorch-lightning", alone=True)


@pytest.mark.parametrize(("version", "case", "batch"), [("2.0.0", "last_batch", 4), ("2.4.0", "batch", 2)])
def test_warns_if_one_step_is_taken_twice(version, case, batch):
    stock, shim = (result.facts for result in PROGRAM.both(case, version))
    whole = PROGRAM.stock("whole", version).facts
    assert (whole["steps"], stock["steps"]) == (8, 9) and stock["weight"] != whole["weight"]
    (warning,) = shim.pop("warnings")
    stock.pop("warnings", None)
    assert shim == stock
    assert f"end of batch {batch} of an epoch" in warning and "move to Lightning 2.5.1 or later" in warning
    assert find("warn-mid-epoch-resume")[0].impact.summary in warning


@pytest.mark.parametrize(
    ("version", "case"),
    [("2.0.0", "epoch"), ("2.4.0", "epoch"), ("2.4.0", "validation"), ("2.5.0", "batch"), ("2.5.1", "batch")],
)
def test_warning_is_absent_if_no_step_is_taken_twice(version, case):
    stock, shim = (result.facts for result in PROGRAM.both(case, version))
    assert stock["steps"] == 8 and not shim.pop("warnings")
    stock.pop("warnings", None)
    assert shim == stock
