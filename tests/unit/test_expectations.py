"""The rows of ``EXPECT``: how they are read and checked."""

import pytest

from tests.support import expectations
from tests.support.variants import PATCHES, Result

from _expect import bug, fixed, patched, same, warns, whole_run  # isort: skip

RIGHT, WRONG = Result(0, "", [{"rows": 2}]), Result(0, "", [{"rows": 1}])
FAILED = Result(1, "ValueError: no rows", [{"rows": 2}])
SILENT = Result(0, "")


def passes(row, stock=None, shim=None, like=None):
    """Return True if the row has no problems when the program has these results."""

    def run(row, version, patched, case=None):
        result = like if case is not None or version == "2.0.5" else shim if patched else stock
        return Result(result.status, result.output, [dict(rank) for rank in result.observations])

    row = expectations.replace(row, patch="csv-logger-flush")
    return expectations.problems(row, "2.0.4", run) == []


@pytest.mark.parametrize(
    ("expected", "result", "shown"),
    [
        ({"rows": 2}, RIGHT, True),
        ({"rows": 2}, WRONG, False),
        ({"rows": 2}, SILENT, False),
        ({"lost": 2}, RIGHT, False),
        ({"rate": [0.5, None]}, Result(0, "", [{"rate": [(0.5).hex(), None], "more": 1}]), True),
        ([{"rows": 2}], RIGHT, True),
        ([{"rows": 2}, {}], RIGHT, False),
        ("no rows", FAILED, True),
        ("no columns", FAILED, False),
        ("no rows", Result(0, "ValueError: no rows"), False),
        (lambda seen: seen["rows"] > 1, RIGHT, True),
        (lambda seen: seen["rows"] > 1, SILENT, False),
        (whole_run(lambda result: not result.observations), SILENT, True),
    ],
)
def test_result_is_compared_with_the_expected_one(expected, result, shown):
    assert expectations.shows(expected, result) is shown


@pytest.mark.parametrize(
    ("stock", "shim", "is_right"),
    [(RIGHT, RIGHT, True), (RIGHT, WRONG, False), (RIGHT, FAILED, False), (FAILED, FAILED, False)],
)
def test_same_compares_observations_and_status(stock, shim, is_right):
    assert passes(same("", "", {"rows": 2}), stock, shim) is is_right


def test_same_needs_observations():
    assert not passes(same("", ""), SILENT, SILENT)


def test_same_can_expect_an_error():
    assert passes(same("", "", "no rows"), FAILED, FAILED)
    assert not passes(same("", "", "no rows"), FAILED, RIGHT)
    assert not passes(same("", "", "no rows"), RIGHT, RIGHT)


def test_same_compares_the_chosen_part():
    other = Result(0, "", [{"rows": 2, "seconds": 3}])
    assert passes(same("", "", compare="rows"), RIGHT, other)
    assert passes(same("", "", compare=lambda ranks: len(ranks)), RIGHT, other)
    assert not passes(same("", ""), RIGHT, other)


@pytest.mark.parametrize(
    ("stock", "shim", "like", "is_right"),
    [
        (WRONG, RIGHT, RIGHT, True),
        (RIGHT, RIGHT, RIGHT, False),
        (WRONG, WRONG, WRONG, False),
        (WRONG, FAILED, FAILED, False),
        (WRONG, RIGHT, Result(0, "", [{"rows": 3}]), False),
    ],
)
@pytest.mark.parametrize("fields", [{}, {"like": "by hand"}, {"stock": {"rows": 1}}])
def test_fixed_needs_the_bug_on_stock_and_the_right_result(fields, stock, shim, like, is_right):
    assert passes(fixed(**fields), stock, shim, like) is is_right


@pytest.mark.parametrize(("stock", "shim", "is_right"), [(WRONG, RIGHT, True), (WRONG, WRONG, False)])
def test_fixed_with_a_patched_result_needs_no_other_run(stock, shim, is_right):
    assert passes(fixed(patched={"rows": 2}), stock, shim) is is_right


@pytest.mark.parametrize(
    ("expected", "shim", "is_right"),
    [
        ({"rows": 2}, RIGHT, True),
        ({"rows": 2}, WRONG, False),
        ({"rows": 2}, FAILED, False),
        ("no rows", FAILED, True),
        (whole_run(lambda result: result.status == 1), FAILED, True),
    ],
)
def test_patched_runs_the_shim_alone(expected, shim, is_right):
    assert passes(patched("", "", expected), shim=shim) is is_right


@pytest.mark.parametrize(
    ("stock", "shim", "is_right"),
    [
        ([[]], [["two rows"]], True),
        ([[], []], [["two rows"], []], True),
        ([[]], [[]], False),
        ([[]], [["three rows"]], False),
        ([[]], [["two rows", "two rows"]], False),
        ([[], []], [["two rows"], ["two rows"]], False),
        ([["two rows"]], [["two rows"]], False),
    ],
)
def test_warns_needs_one_warning_in_rank_zero(stock, shim, is_right):
    results = (Result(0, "", [{"rows": 2, "warnings": rank} for rank in ranks]) for ranks in (stock, shim))
    assert passes(warns("", "", "two rows"), *results) is is_right


def test_warns_compares_the_other_observations():
    stock, shim = Result(0, "", [{"rows": 2, "warnings": []}]), Result(0, "", [{"rows": 1, "warnings": ["a"]}])
    assert not passes(warns("", "", "a"), stock, shim)


@pytest.mark.parametrize(
    ("row", "toggle"),
    [
        (same("", ""), "default,csv-logger-flush"),
        (same("", "", alone=True), "csv-logger-flush"),
        (same("", "", toggle="all"), "all"),
    ],
)
def test_toggle_selects_the_patch(monkeypatch, row, toggle):
    toggles = {}

    def run(program, variant, case, simulated_cuda, toggle, **options):
        toggles[variant.shim] = toggle
        return RIGHT

    monkeypatch.setattr(expectations.variants, "run", run)
    assert expectations.problems(expectations.replace(row, patch="csv-logger-flush"), "2.0.4") == []
    assert toggles == {False: None, True: toggle}


def test_rows_are_read_without_the_program():
    (row,) = expectations.read(PATCHES / "loops" / "fit_resets_should_stop.py")
    assert (row.kind, row.patch, row.program) == ("bug", "fit-resets-should-stop", "fit_resets_should_stop")
    assert row.what == "A Trainer that was stopped early does not train in a second fit"
    assert expectations.releases(row) == ("2.5.0.post0",)


def test_bug_must_state_a_result(tmp_path, monkeypatch):
    path = tmp_path / "fit_resets_should_stop.py"
    path.write_text("from _expect import bug\nEXPECT = [bug()]\n")
    monkeypatch.setattr(expectations.selection, "of_patch", lambda _: "fit-resets-should-stop")
    monkeypatch.setattr(expectations.variants, "ROOT", tmp_path)
    with pytest.raises(AssertionError, match="a bug must state what stock or a patched run shows"):
        expectations.read(path)


def test_bug_without_a_stock_result_shows_when_it_is_not_right():
    row = bug(patched={"rows": 2})
    assert expectations.shows_bug(row, WRONG) and not expectations.shows_bug(row, RIGHT)
