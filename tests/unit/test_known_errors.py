"""Errors that `diagnose` knows, by their last line and symptoms, and the Lightning that lightning-cloud breaks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lightning_patches import cli
from lightning_patches.cli.diagnose import known
from tests.unit.test_answers import LOGS, answer, read_case


def test_libuv_error_is_explained_by_the_build_of_torch(capsys: pytest.CaptureFixture[str]) -> None:
    """The words of a torch on Linux that was built without libuv."""
    line = "RuntimeError: use_libuv was requested but PyTorch was built without libuv support, run with USE_LIBUV=0"
    document = answer(capsys, f"{line} to disable it.")
    assert [match["name"] for match in document["matches"]] == ["torch-without-libuv"]
    assert document["verdict"].startswith("The cause is outside of Lightning: This build of torch has no libuv")
    assert "export USE_LIBUV=0" in document["do"] and "torch for Windows" not in json.dumps(document)


ERRORS = [record for record in known.records() if record.impact.error]


@pytest.mark.parametrize("record", ERRORS, ids=lambda record: record.name)
def test_line_of_a_known_error_alone_leads_to_its_record(
    record: known.Record, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The record is a possible match or, for a line that any program may print, a hint."""
    line = re.sub(r"(?<=\w)\.\.\.", ".x", record.impact.error).replace("...", "x")
    (tmp_path / "job.log").write_text(f"{line}\n")
    document = answer(capsys, str(tmp_path / "job.log"))
    shown = {match["name"] for match in document["matches"]}
    is_of_any_class = line == "AttributeError: 'x' object has no attribute 'x'"
    leads = record.name in shown or record.name in json.dumps(document["more"])
    assert leads is not is_of_any_class, (line, document["verdict"])


@pytest.mark.parametrize("record", ERRORS, ids=lambda record: record.name)
def test_symptom_that_is_an_error_leads_to_its_record(record: known.Record, capsys: pytest.CaptureFixture[str]) -> None:
    for symptom in record.impact.symptoms:
        if re.match(r"(?:[\w.]+\.)?[A-Z]\w+(?:Error|Exception): ", symptom) and len(symptom.split()) > 2:
            document = answer(capsys, symptom.replace("...", "x"))
            shown = {match["name"] for match in document["matches"]}
            assert record.name in shown or record.name in json.dumps(document["more"]), symptom


def test_release_with_a_newer_app_excludes_its_requirements(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, log = read_case(LOGS / "app-requirements.fastapi-is-missing.log")
    (tmp_path / "job.log").write_text(log)
    document = answer(capsys, str(tmp_path / "job.log"), "--requirement", "lightning==2.2.5")
    assert [match["kind"] for match in document["matches"]] == ["ruled out"]


@pytest.mark.parametrize(
    ("version", "cloud", "is_broken"),
    [("2.0.7", "0.6.0", True), ("2.0.7", "0.5.70", False), ("2.0.7", "", False), ("2.0.8", "0.6.0", False)],
)
def test_status_doctor_and_audit_report_a_lightning_that_lightning_cloud_breaks(
    version: str,
    cloud: str,
    is_broken: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    package = tmp_path / "lightning" / "pytorch"
    package.mkdir(parents=True)
    for directory in (package, package.parent):
        (directory / "__init__.py").touch()
    (package.parent / "version.info").write_text(version)
    for name, of in (("lightning", version), ("lightning_cloud", cloud)):
        if of:
            metadata = tmp_path / f"{name}-{of}.dist-info"
            metadata.mkdir()
            metadata.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {of}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    advice = 'pip install "lightning-cloud<0.6"'
    cli.main(["status"])
    shown = capsys.readouterr().out
    assert ("Do: repair lightning 2.0.7" in shown, advice in shown) == (is_broken, is_broken)
    cli.main(["doctor", "--no-torch", "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [finding["severity"] for finding in found if finding["check"] == "broken-import"] == ["error"] * is_broken
    if cloud:
        cli.main(["audit", "--json"])
        (one,) = [one for one in json.loads(capsys.readouterr().out)["audited"] if one["distribution"] == "lightning"]
        assert ("app-beside-lightning-cloud" in [bug["name"] for bug in one["bugs"]]) is is_broken
        assert (advice in one["do"]) is is_broken


@pytest.mark.parametrize(
    ("asked", "is_there"),
    [
        ("lightning==2.0.7\n", True),
        ("lightning==2.0.7\nlightning-cloud==0.5.70\n", False),
        ("lightning==2.0.8\n", False),
        ("pytorch-lightning==2.0.7\n", False),
    ],
)
def test_audit_advises_another_lightning_cloud_unless_the_file_pins_one(
    asked: str, is_there: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(asked)
    cli.main(["audit", "--json", str(tmp_path / "requirements.txt")])
    (one,) = json.loads(capsys.readouterr().out)["audited"]
    assert ("app-beside-lightning-cloud" in [bug["name"] for bug in one["bugs"]]) is is_there
    assert ('run `pip install "lightning-cloud<0.6"`' in one["do"]) is is_there
