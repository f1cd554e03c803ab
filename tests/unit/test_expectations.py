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


def warned(*ranks, rows=2):
    """Return the result of a program whose ranks have these warnings."""
    return Result(0, "", [{"rows": rows, "warnings": list(one)} for one in ranks])


TIMED, OTHER = Result(0, "", [{"rows": 2, "seconds": 3}]), Result(0, "", [{"rows": 3}])
NO_ROWS, TWO = same("", "", "no rows"), warns("", "", "two rows")
ROWS = [
    # the row, stock, shim, the recommended usage, and True if the row passes
    *[(same("", "", {"rows": 2}), stock, shim, None, is_right) for stock, shim, is_right in
      [(RIGHT, RIGHT, True), (RIGHT, WRONG, False), (RIGHT, FAILED, False), (FAILED, FAILED, False)]],
    (same("", ""), SILENT, SILENT, None, False),  # it needs observations
    (NO_ROWS, FAILED, FAILED, None, True), (NO_ROWS, FAILED, RIGHT, None, False), (NO_ROWS, RIGHT, RIGHT, None, False),
    (same("", "", compare="rows"), RIGHT, TIMED, None, True),
    (same("", "", compare=lambda ranks: len(ranks)), RIGHT, TIMED, None, True),
    (same("", ""), RIGHT, TIMED, None, False),
    *[(fixed(**fields), stock, shim, like, is_right) for fields in ({}, {"like": "by hand"}, {"stock": {"rows": 1}})
      for stock, shim, like, is_right in
      [(WRONG, RIGHT, RIGHT, True), (RIGHT, RIGHT, RIGHT, False), (WRONG, WRONG, WRONG, False),
       (WRONG, FAILED, FAILED, False), (WRONG, RIGHT, OTHER, False)]],
    (fixed(patched={"rows": 2}), WRONG, RIGHT, None, True), (fixed(patched={"rows": 2}), WRONG, WRONG, None, False),
    *[(patched("", "", {"rows": 2}), None, shim, None, shim is RIGHT) for shim in (RIGHT, WRONG, FAILED)],
    (patched("", "", "no rows"), None, FAILED, None, True),
    (patched("", "", whole_run(lambda result: result.status == 1)), None, FAILED, None, True),
    # one warning in rank zero, and the other observations of stock
    (TWO, warned([]), warned(["two rows"]), None, True), (TWO, warned([], []), warned(["two rows"], []), None, True),
    (TWO, warned([]), warned([]), None, False), (TWO, warned([]), warned(["three rows"]), None, False),
    (TWO, warned([]), warned(["two rows", "two rows"]), None, False),
    (TWO, warned([], []), warned(["two rows"], ["two rows"]), None, False),
    (TWO, warned(["two rows"]), warned(["two rows"]), None, False),
    (TWO, warned([]), warned(["two rows"], rows=1), None, False),
]  # fmt: skip


@pytest.mark.parametrize(("row", "stock", "shim", "like", "is_right"), ROWS)
def test_row_passes_if_its_runs_show_what_it_says(row, stock, shim, like, is_right):
    assert passes(row, stock, shim, like) is is_right


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
