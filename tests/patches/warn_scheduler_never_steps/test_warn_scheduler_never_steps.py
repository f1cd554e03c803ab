import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-scheduler-never-steps", "2.6.6", scenario="scheduler_frequency_in_steps")
WARNING = "with interval='step' and frequency=3 never steps"


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_scheduler_that_never_steps_is_warned_of_once(version):
    stock, shim = PROGRAM.both(version=version)
    assert shim.output.count(WARNING) == 1 and shim.observations == stock.observations, shim


@pytest.mark.parametrize(
    ("case", "toggle"), [("divides", ""), ("recommended", ""), ("", "default,scheduler-frequency-in-steps")]
)
def test_scheduler_that_steps_gives_no_warning(case, toggle):
    shim = PROGRAM.shim(case, toggle=toggle)
    assert shim.ok and WARNING not in shim.output, shim
