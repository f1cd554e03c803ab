"""The helper that runs a patch's program on stock and with the shim."""

import pytest

from tests.support import programs
from tests.support.programs import Program

PROGRAM = Program("csv-logger-flush", "2.0.4")


@pytest.mark.parametrize(
    ("program", "options", "toggle"),
    [
        (PROGRAM, {}, "default,csv-logger-flush"),
        (Program("csv-logger-flush", "2.0.4", alone=True), {}, "csv-logger-flush"),
        (Program("csv-logger-flush", "2.0.4", toggle="all"), {}, "all"),
        (PROGRAM, {"toggle": "default"}, "default"),
    ],
)
def test_toggle_selects_the_patch(monkeypatch, program, options, toggle):
    toggles = {}
    monkeypatch.setattr(programs, "run", lambda _, variant, case, toggle: toggles.update({variant.shim: toggle}))
    program.both(**options)
    assert toggles == {False: None, True: toggle}


@pytest.mark.parametrize(
    ("version", "distribution"), [("2.0.9.post0", "pytorch-lightning"), ("2.1.0", "lightning"), ("2.6.6", "lightning")]
)
def test_distribution_can_be_imported(monkeypatch, version, distribution):
    monkeypatch.setattr(programs, "run", lambda _, variant, case, toggle: variant)
    assert PROGRAM.stock(version=version).distribution == distribution
