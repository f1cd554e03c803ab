"""Each upstream report that was tried has a verdict, and the patches that it names list its number."""

import json
from pathlib import Path

import pytest

from lightning_patches import patches as catalogue
from lightning_patches.engine.fingerprints import known_releases
from tests.support.scripts import load
from tests.support.variants import ROOT

LINES = [
    [cell.strip() for cell in line.split("|")]
    for line in (ROOT / "upstream" / "reports.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def test_each_report_has_a_true_verdict() -> None:
    assert len(LINES) > 15
    numbers = [int(number) for number, *_ in LINES]
    assert numbers == sorted(set(numbers), reverse=True)
    for number, release, verdict, showed in LINES:
        kind, _, names = verdict.partition(": ")
        assert kind in ("mended", "said", "open", "not ours", "not reproduced"), verdict
        assert release in known_releases() and showed, number
        for name in names.split(", ") if kind in ("mended", "said") else ():
            (patch,) = catalogue.find(name)
            assert int(number) in patch.numbers and patch.warns is (kind == "said"), (number, name)


def test_reports_without_a_verdict_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, file = load("open_reports"), tmp_path / "bugs.json"
    monkeypatch.setattr("sys.argv", ["open_reports", str(file)])
    known = [{"number": number, "title": "known"} for number in (21901, 19813, 13856)]  # reports, a patch, a duplicate
    file.write_text(json.dumps([*known, {"number": 99998, "title": "older"}, {"number": 99999, "title": "new"}]))
    assert script.main() == 1
    assert capsys.readouterr().out == "#99999 new\n#99998 older\n"
    file.write_text(json.dumps(known))
    assert script.main() == 0 and not capsys.readouterr().out
    file.write_text("<html>")
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 2 and "gh issue list" in capsys.readouterr().err
