import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-early-stopped-resumed", "2.6.6")

test_stopped_run_that_trains_on_is_warned_of_once = PROGRAM.warns(
    "stopped", "threshold", says="EarlyStopping had stopped the run", on=["2.0.0", "2.6.6"]
)
test_other_runs_are_unchanged = PROGRAM.unchanged("going", "new", "again", on=["2.0.0", "2.6.6"])


@pytest.mark.parametrize("case", ["stopped"])
def test_stock_trains_on(case):
    assert PROGRAM.stock(case).observations[0]["epochs"] == [3, 4]
