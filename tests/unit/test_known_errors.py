"""Errors that ``diagnose`` knows: as programs printed them, with the record that has to be found and its advice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lightning_patches import cli
from lightning_patches.cli.diagnose import known


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    cli.main(["diagnose", *arguments, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_libuv_is_blamed_on_the_build_of_torch_and_not_on_windows(capsys: pytest.CaptureFixture[str]) -> None:
    """The words of a torch on Linux that was built without libuv."""
    line = "RuntimeError: use_libuv was requested but PyTorch was built without libuv support, run with USE_LIBUV=0"
    document = answer(capsys, f"{line} to disable it.")
    assert [match["name"] for match in document["matches"]] == ["torch-without-libuv"]
    assert document["verdict"].startswith("The cause is outside of Lightning: This build of torch has no libuv")
    assert "export USE_LIBUV=0" in document["do"] and "torch for Windows" not in json.dumps(document)


LOGS = Path(__file__).parents[1] / "answers" / "errors"
ADVICE = {
    # An MLFlowLogger() with mlflow-skinny 3.17.2 and Lightning 2.6.6
    "mlflow-file-store": ('tracking_uri="sqlite:///mlflow.db"', "MLFLOW_ALLOW_FILE_STORE=true"),
    # `import lightning` 2.0.7 beside lightning-cloud 0.6.0
    "app-beside-lightning-cloud": ('pip install "lightning-cloud<0.6"', "pytorch-lightning in the same version"),
    # `import lightning` 2.0.9 that was installed with --no-deps
    "app-requirements.fastapi-is-missing": ("pip install lightning==VERSION", "without `--no-deps`"),
    # The same with fastapi, and without starsessions
    "app-requirements.another-package-is-missing": ("pip install lightning==VERSION",),
    # `import lightning` 2.0.9 beside pydantic 1 and a fastapi that needs pydantic 2
    "app-requirements.fastapi-and-pydantic-do-not-fit": (
        "replaces what does not fit",
        "pytorch-lightning in the same version",
    ),
    # torchrun --nproc_per_node 2, accelerator="cpu", strategy="ddp", Lightning 2.2.5
    "devices-unlike-launcher": ("`devices=` the number of `--nproc_per_node`", "On the CPU always give `devices=N`"),
    # torchrun --max-restarts 1 --rdzv-backend c10d, after rank 1 has died, Lightning 2.6.6
    "store-kept-at-restart": ("TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1", "--rdzv-backend=c10d"),
    # LightningCLI a second time with logger=False, Lightning 2.2.5
    "config-of-a-previous-run": ("requeued", 'save_config_kwargs={"overwrite": True}'),
    # python app.pyz, two devices, Lightning 2.6.6
    "ranks-of-a-zipapp": ("torchrun --nproc_per_node=N app.pyz",),
    # test() with a metric named iou[/m], Lightning 2.2.5
    "rich-markup-in-names": ("iou_per_m", "verbose=False"),
    # Lightning 2.6.6
    "Trainer.lr_find": ("Tuner(trainer).lr_find(model)",),
    # num_workers=2 with forkserver and without a guard, Lightning 2.6.6
    "script-without-main-guard": ('`if __name__ == "__main__":`', 'multiprocessing_context="fork"'),
    # num_workers=2 with forkserver, Lightning 2.6.6
    "object-not-picklable-for-workers.a-lambda-below-3_14": ("top of a module", 'multiprocessing_context="fork"'),
    # num_workers=2 with forkserver, Lightning 2.6.6
    "object-not-picklable-for-workers.a-lambda": ("top of a module", 'multiprocessing_context="fork"'),
    # num_workers=2 with forkserver, Lightning 2.6.6
    "object-not-picklable-for-workers.a-class-of-a-function-below-3_14": (
        "top of a module",
        'multiprocessing_context="fork"',
    ),
    # num_workers=2 with forkserver, Lightning 2.6.6
    "object-not-picklable-for-workers.a-class-of-a-function": ("top of a module", 'multiprocessing_context="fork"'),
}
"""Logs of real programs, shortened, and parts of the advice. The name of a log begins with the name of the record."""


@pytest.mark.parametrize("name", ADVICE)
def test_recorded_log_is_answered_with_cause_and_advice(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    release = "lightning==2.0.7" if name.startswith("app-") else "lightning==2.2.5"
    document = answer(capsys, str(LOGS / f"{name}.log"), "--requirement", release)
    main = document["matches"][0]
    assert name.startswith(main["name"]) and main["cause"], document["verdict"]
    assert all(words in document["do"] for words in ADVICE[name]), document["do"]
    if "workers" in name or "guard" in name:
        assert "From Python 3.14 on, forkserver is the default on Linux" in json.dumps(document)


@pytest.mark.parametrize("name", ADVICE)
def test_the_line_of_an_error_alone_is_answered_with_the_same_record(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (LOGS / f"{name}.log").read_text().splitlines()
    said = [line for line in lines if re.search(r"^[\w.]+Error: \S|^[\w.]+Exception: |finding module|An attempt", line)]
    names = [match["name"] for match in answer(capsys, said[0].strip())["matches"]]
    is_of_any_program = "another-package" in name
    assert any(name.startswith(one) for one in names) is not is_of_any_program, said[0]


ERRORS = [record for record in known.records() if record.impact.error]


@pytest.mark.parametrize("record", ERRORS, ids=lambda record: record.name)
def test_the_line_of_each_known_error_alone_leads_to_its_record(
    record: known.Record, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As a match that is possible or, for a line that any program may print, as a hint."""
    line = re.sub(r"(?<=\w)\.\.\.", ".x", record.impact.error).replace("...", "x")
    (tmp_path / "job.log").write_text(f"{line}\n")
    document = answer(capsys, str(tmp_path / "job.log"))
    shown = {match["name"] for match in document["matches"]}
    is_of_any_class = line == "AttributeError: 'x' object has no attribute 'x'"
    leads = record.name in shown or record.name in json.dumps(document["more"])
    assert leads is not is_of_any_class, (line, document["verdict"])


@pytest.mark.parametrize("record", ERRORS, ids=lambda record: record.name)
def test_each_symptom_that_is_an_error_alone_leads_to_its_record(
    record: known.Record, capsys: pytest.CaptureFixture[str]
) -> None:
    for symptom in record.impact.symptoms:
        if re.match(r"(?:[\w.]+\.)?[A-Z]\w+(?:Error|Exception): ", symptom) and len(symptom.split()) > 2:
            document = answer(capsys, symptom.replace("...", "x"))
            shown = {match["name"] for match in document["matches"]}
            assert record.name in shown or record.name in json.dumps(document["more"]), symptom


def test_release_with_a_newer_app_excludes_its_requirements(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = LOGS / "app-requirements.fastapi-is-missing.log"
    document = answer(capsys, str(log), "--requirement", "lightning==2.2.5")
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
