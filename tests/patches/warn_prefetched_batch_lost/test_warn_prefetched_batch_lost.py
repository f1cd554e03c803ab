import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-prefetched-batch-lost", "2.6.6", scenario="stateful_loader_exact")
WARNING = "fetched one batch ahead"


@pytest.mark.parametrize("version", ["2.4.0", "2.6.6"])
def test_lost_batch_is_warned_of_once(version):
    case = "stateful stream: within"
    without = PROGRAM.shim(case, version, toggle="default,-warn-prefetched-batch-lost")
    shim = PROGRAM.shim(case, version)
    assert shim.output.count(WARNING) == 1 and shim.observations == without.observations, shim


@pytest.mark.parametrize("case", ["stateful: within", "stateful stream: last batch", "stateful stream: epoch end"])
def test_no_warning_if_no_batch_is_lost(case):
    shim = PROGRAM.shim(case)
    assert shim.ok and WARNING not in shim.output, shim


def test_no_warning_with_the_fix():
    shim = PROGRAM.shim("stateful stream: within", toggle="default,stateful-loader-exact")
    assert shim.ok and WARNING not in shim.output, shim
