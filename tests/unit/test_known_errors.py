"""Errors that `diagnose` knows, by their last line and symptoms, and the Lightning that lightning-cloud breaks."""

from __future__ import annotations

import json
import re

import pytest

from lightning_patches.cli.diagnose import known
from tests.unit.commands import Audit, Command, Diagnose
from tests.unit.test_answers import LOGS, read_case

ERRORS = [record for record in known.records() if record.impact.error]


@pytest.mark.parametrize("record", ERRORS, ids=lambda record: record.name)
def test_line_of_a_known_error_alone_leads_to_its_record(record: known.Record, diagnose: Diagnose) -> None:
    """The record is a possible match or, for a line that any program may print, a hint."""
    line = re.sub(r"(?<=\w)\.\.\.", ".x", record.impact.error).replace("...", "x")
    document = diagnose.json(diagnose.write("job.log", f"{line}\n"))
    shown = {match["name"] for match in document["matches"]}
    is_of_any_class = line == "AttributeError: 'x' object has no attribute 'x'"
    leads = record.name in shown or record.name in json.dumps(document["more"])
    assert leads is not is_of_any_class, (line, document["verdict"])


@pytest.mark.parametrize("record", ERRORS, ids=lambda record: record.name)
def test_symptom_that_is_an_error_leads_to_its_record(record: known.Record, diagnose: Diagnose) -> None:
    for symptom in record.impact.symptoms:
        if re.match(r"(?:[\w.]+\.)?[A-Z]\w+(?:Error|Exception): ", symptom) and len(symptom.split()) > 2:
            document = diagnose.json(symptom.replace("...", "x"))
            shown = {match["name"] for match in document["matches"]}
            assert record.name in shown or record.name in json.dumps(document["more"]), symptom


def test_release_with_a_newer_app_excludes_its_requirements(diagnose: Diagnose) -> None:
    _, log = read_case(LOGS / "app-requirements.fastapi-is-missing.log")
    document = diagnose.json(diagnose.write("job.log", log), "--requirement", "lightning==2.2.5")
    assert [match["kind"] for match in document["matches"]] == ["ruled out"]


@pytest.mark.parametrize(
    ("version", "cloud", "is_broken"),
    [("2.0.7", "0.6.0", True), ("2.0.7", "0.5.70", False), ("2.0.7", "", False), ("2.0.8", "0.6.0", False)],
)
def test_status_doctor_and_audit_report_a_lightning_that_lightning_cloud_breaks(
    version: str, cloud: str, is_broken: bool, monkeypatch: pytest.MonkeyPatch, audit: Audit
) -> None:
    for name in ("lightning/__init__.py", "lightning/pytorch/__init__.py"):
        audit.write(name)
    audit.write("lightning/version.info", version)
    for name, of in (("lightning", version), ("lightning_cloud", cloud)):
        if of:
            audit.write(f"{name}-{of}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {of}\n")
    monkeypatch.syspath_prepend(str(audit.directory))
    advice = 'pip install "lightning-cloud<0.6"'
    status, doctor = (Command(name, audit.directory, audit.capsys) for name in ("status", "doctor"))
    status()
    assert ("Do: repair lightning 2.0.7" in status.out, advice in status.out) == (is_broken, is_broken)
    found = doctor.json("--no-torch")["findings"]
    assert [finding["severity"] for finding in found if finding["check"] == "broken-import"] == ["error"] * is_broken
    if cloud:
        (one,) = [one for one in audit.audited() if one["distribution"] == "lightning"]
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
def test_audit_advises_another_lightning_cloud_unless_the_file_pins_one(audit, asked, is_there):
    (one,) = audit.audited(audit.write("requirements.txt", asked))
    assert ("app-beside-lightning-cloud" in [bug["name"] for bug in one["bugs"]]) is is_there
    assert ('run `pip install "lightning-cloud<0.6"`' in one["do"]) is is_there
