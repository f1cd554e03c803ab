import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-reload-starts-twice", "2.6.6", scenario="reload_starts_once")
WARNING = "starts each reloaded data loader twice"


@pytest.mark.parametrize("version", ["2.1.0", "2.6.6"])
def test_stream_that_is_started_twice_is_warned_of_once(version):
    stock, shim = PROGRAM.both(version=version)
    assert shim.output.count(WARNING) == 1 and shim.observations == stock.observations, shim


@pytest.mark.parametrize(("case", "toggle"), [("kept", ""), ("", "default,reload-starts-once")])
def test_stream_that_is_started_once_gives_no_warning(case, toggle):
    shim = PROGRAM.shim(case, toggle=toggle)
    assert shim.ok and WARNING not in shim.output, shim
