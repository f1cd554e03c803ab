"""``diagnose`` is asked in other words than those of the records: questions, and descriptions of silent bugs.

Of each there is a file that it was tuned with, and one that it was not.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lightning_patches import cli
from lightning_patches.cli.diagnose import candidates, describe, known

FILES = Path(__file__).parent
SEEN, UNSEEN, DESCRIBED, HELD_OUT = (
    [line for line in FILES.joinpath(f"{name}.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    for name in ("questions", "questions_unseen", "descriptions", "descriptions_held_out")
)


def is_right(line: str, capsys: pytest.CaptureFixture[str]) -> bool:
    expected, question = (part.strip() for part in line.split("|"))
    names = expected.split(", ")
    status = cli.main(["diagnose", question, "--json"])
    answer = json.loads(capsys.readouterr().out)
    found = [match["name"] for match in answer["matches"]]
    assert (status == 0) is bool(found), answer
    assert {match["kind"] for match in answer["matches"]} <= {"possible"}, answer
    assert not found or answer["verdict"].startswith(("Perhaps ", "Probably "))
    if expected == "-":
        return not found
    return bool({*names} & {*found}) or ("hang" in names and "LIGHTNING_PATCHES_HANG_TIMEOUT" in answer["closing"])


@pytest.mark.parametrize(("lines", "right"), [(SEEN, 93), (UNSEEN, 41)], ids=["seen", "unseen"])
def test_questions(lines: list[str], right: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the unseen 47 were right at the first try. There are fewer since more patches share their words, and since a
    record is named only if its condition is stated."""
    assert len(lines) == (100 if lines is SEEN else 50)
    assert sum(is_right(line, capsys) for line in lines) >= right


@pytest.mark.parametrize(("lines", "right"), [(DESCRIBED, 134), (HELD_OUT, 44)], ids=["tuned", "held out"])
def test_silent_bugs_are_described(lines: list[str], right: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of them are known, and half are bugs of Lightning that no record is about."""
    wrong = [line for line in lines if not is_right(line, capsys)]
    with capsys.disabled():
        print(f"\n{len(lines) - len(wrong)} of {len(lines)} right")
    assert len(lines) - len(wrong) >= right, wrong


@pytest.mark.parametrize("line", [*DESCRIBED, *HELD_OUT], ids=lambda line: line.partition(" | ")[2][:60])
def test_no_description_of_a_bug_is_denied(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["diagnose", line.partition(" | ")[2]])
    said = capsys.readouterr().out
    assert not re.search(r"no bug(?! that is described)|not a bug|No release of|outside of Lightning", said), said


def test_conditions_are_about_records_and_are_met_by_their_own_texts() -> None:
    records = {record.name: record for record in known.records()}
    for name, groups in describe.conditions().items():
        assert groups and all(word for group in groups for word in group), name
        own = {word for text in candidates.known_texts(records[name]) for word in describe.words(text)}
        if records[name].impact.symptoms:
            assert all(any(word <= own for word in group) for group in groups), name
