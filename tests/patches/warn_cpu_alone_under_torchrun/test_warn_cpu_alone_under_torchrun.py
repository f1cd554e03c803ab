import pytest

from tests.support.programs import Program

pytestmark = pytest.mark.distributed
PROGRAM = Program("warn-cpu-alone-under-torchrun", "2.6.6", toggle="default", options={"timeout": 300})

test_processes_that_work_alone_are_warned_of_once = PROGRAM.warns(
    on=["2.0.0", "2.6.6"], says="Each of the 2 processes that torchrun has started works alone"
)
test_no_warning_with_a_number_of_devices_or_one_process = PROGRAM.unchanged("given", "one", "one-process")
