"""The helper that runs a patch's program on stock and with the shim."""

import pytest

from tests.equivalence.proof import only, sees
from tests.support import programs
from tests.support.programs import Program
from tests.support.variants import Result

PROGRAM = Program("csv-logger-flush", "2.0.4")
RIGHT, WRONG = Result(0, "", [{"rows": 2}]), Result(0, "", [{"rows": 1}])
FAILED = Result(1, "", [{"rows": 2}])
SHOWS_BUG = sees(lambda seen: seen["rows"] == 1)


def outcome(monkeypatch, test, stock, shim, fixed=RIGHT):
    """Return True if the test passes when the program has these results."""

    def run(scenario, variant, case, toggle):
        assert (scenario, case) == ("csv_logger_flush", "")
        return shim if variant.shim else fixed if variant.version == "2.0.5" else stock

    monkeypatch.setattr(programs, "run", run)
    try:
        test("", "2.0.4")
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(
    ("stock", "shim", "passes"),
    [(RIGHT, RIGHT, True), (RIGHT, WRONG, False), (RIGHT, FAILED, False), (FAILED, FAILED, False)],
)
def test_unchanged_compares_observations_and_status(monkeypatch, stock, shim, passes):
    assert outcome(monkeypatch, PROGRAM.unchanged(), stock, shim) is passes


def test_unchanged_fails_without_observations(monkeypatch):
    assert not outcome(monkeypatch, PROGRAM.unchanged(), Result(0, ""), Result(0, ""))


def test_unchanged_compares_failing_programs_if_expected(monkeypatch):
    assert outcome(monkeypatch, PROGRAM.unchanged(ends_well=False), FAILED, FAILED)
    assert not outcome(monkeypatch, PROGRAM.unchanged(ends_well=False), FAILED, RIGHT)


def test_unchanged_checks_what_the_test_is_about(monkeypatch):
    assert outcome(monkeypatch, PROGRAM.unchanged(check=SHOWS_BUG), WRONG, WRONG)
    assert not outcome(monkeypatch, PROGRAM.unchanged(check=SHOWS_BUG), RIGHT, RIGHT)


def test_unchanged_compares_chosen_part(monkeypatch):
    other = Result(0, "", [{"rows": 2, "seconds": 3}])
    assert outcome(monkeypatch, PROGRAM.unchanged(observed=only("rows")), RIGHT, other)


@pytest.mark.parametrize(
    ("stock", "shim", "fixed", "passes"),
    [
        (WRONG, RIGHT, RIGHT, True),
        (RIGHT, RIGHT, RIGHT, False),
        (WRONG, WRONG, WRONG, False),
        (WRONG, FAILED, FAILED, False),
        (WRONG, RIGHT, Result(0, "", [{"rows": 3}]), False),
    ],
)
def test_fixed_needs_the_bug_on_stock_and_the_result_of_the_fixed_release(monkeypatch, stock, shim, fixed, passes):
    assert outcome(monkeypatch, PROGRAM.fixed(bug=SHOWS_BUG, like="2.0.5"), stock, shim, fixed) is passes


@pytest.mark.parametrize(("stock", "passes"), [(WRONG, True), (RIGHT, False)])
def test_fixed_without_a_check_needs_a_difference_on_stock(monkeypatch, stock, passes):
    assert outcome(monkeypatch, PROGRAM.fixed(like="2.0.5"), stock, RIGHT) is passes


def test_fixed_checks_the_result_with_the_shim(monkeypatch):
    assert not outcome(monkeypatch, PROGRAM.fixed(bug=SHOWS_BUG, right=lambda result: False), WRONG, RIGHT)


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
