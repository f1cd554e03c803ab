"""``diagnose`` asked in other words than the records': 100 questions that it was tuned with, and 50 that it was not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lightning_patches import cli

FILES = Path(__file__).parent
SEEN, UNSEEN = (
    [line for line in FILES.joinpath(name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    for name in ("questions.txt", "questions_unseen.txt")
)


def is_right(line: str, capsys: pytest.CaptureFixture[str]) -> bool:
    expected, question = (part.strip() for part in line.split("|"))
    names = expected.split(", ")
    status = cli.main(["diagnose", question, "--json"])
    answer = json.loads(capsys.readouterr().out)
    found = [match["name"] for match in answer["matches"]]
    assert (status == 0) is bool(found), answer
    # Words alone are never certain, and that is said, but of what is no bug.
    assert {match["kind"] for match in answer["matches"]} <= {"possible"}, answer
    assert not found or answer["verdict"].startswith(("Perhaps ", "Probably ", "No bug: "))
    if expected == "-":
        return not found
    return bool({*names} & {*found}) or ("hang" in names and "LIGHTNING_PATCHES_HANG_TIMEOUT" in answer["closing"])


@pytest.mark.parametrize(("lines", "right"), [(SEEN, 93), (UNSEEN, 44)], ids=["seen", "unseen"])
def test_questions(lines: list[str], right: int, capsys: pytest.CaptureFixture[str]) -> None:
    """60 of the seen before the ranking was made. Of the unseen 47 were right at the first try; it is less since 25
    more patches have words that questions share, and since what is said of something else gets no answer."""
    assert len(lines) == (100 if lines is SEEN else 50)
    assert sum(is_right(line, capsys) for line in lines) >= right
