"""The record of programs for 1.5 to 1.9 on today's packages."""

from tests.equivalence import programs_of_1x as programs
from tests.support.arms import Result


def test_all_is_as_it_has_to_be():
    _, seen = programs.read()
    assert seen
    for one in seen:
        case, arm = one.case.split(": ")
        assert one.saw == programs.expected(one.place[1], case, arm), one


def test_failures_are_told_apart():
    for letter, words in programs.FAILURES.items():
        result = Result(2 if letter == "E" else 1, f"Traceback\n{words} x\n")
        assert programs.saw(result, None) == letter
    assert programs.saw(Result(1, "Traceback\n error: x\n"), None) == "status 1"
    well = Result(0, "", [{"loss": 1}])
    assert programs.saw(well, [{"loss": 1}]) == programs.SAME != programs.saw(well, [{"loss": 2}])
