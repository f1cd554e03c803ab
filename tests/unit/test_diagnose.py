"""``lightning-patches diagnose``: finds symptoms in logs as they come out of launchers, terminals and schedulers."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lightning_patches import cli
from lightning_patches.catalog import all_patches
from lightning_patches.cli import diagnose
from lightning_patches.patch import Impact

DEVICE, UNMASKED = "logged-metrics-device", "dataloader-error-unmasked"
MESSAGE = "RuntimeError: No backend type associated with device type cpu"
TRACEBACK = f"""Traceback (most recent call last):
  File "/opt/env/lib/python3.11/site-packages/lightning/pytorch/trainer/connectors/logger_connector/result.py", line 241
    value = self.meta.sync(self.value)
{MESSAGE}
"""


@pytest.fixture(autouse=True)
def no_toggle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIGHTNING_PATCHES", raising=False)


def names(text: str) -> list[str]:
    return [match.record.name for match in diagnose.find(diagnose.prepare(text))]


@pytest.mark.parametrize(
    "text",
    [
        TRACEBACK,
        TRACEBACK.replace("\n", "\r\n"),
        "".join(f"[rank1]: {line}\n" for line in TRACEBACK.splitlines()),
        "".join(f"3: {line}\n" for line in TRACEBACK.splitlines()),
        "".join(f"[1,2]<stderr>:{line}\n" for line in TRACEBACK.splitlines()),
        "".join(f"(RayTrainWorker pid=71, ip=10.0.0.4) {line}\n" for line in TRACEBACK.splitlines()),
        "".join(f"[default0]:2026-01-02 03:04:05,678 ERROR {line}\n" for line in TRACEBACK.splitlines()),
        "\x1b[1;31mRuntimeError\x1b[0m: No backend type \x1b[33massociated\x1b[0m with device type cpu",
        "│ RuntimeError: No backend type associated │\n│ with device type cpu │",
        f"Epoch 0:  10%\r{MESSAGE}",
        MESSAGE.upper(),
    ],
    ids=["plain", "crlf", "torch", "srun", "mpirun", "ray", "torchrun", "colours", "box", "progress bar", "case"],
)
def test_logs_as_they_come(text: str) -> None:
    assert DEVICE in names(text)


@pytest.mark.parametrize("patch", all_patches(), ids=lambda patch: patch.name)
def test_every_symptom_is_found(patch: Any) -> None:
    """Behind the frames of a traceback through the file that the patch is for."""
    file = "/x/lightning/" + patch.targets[0].module.replace(".", "/") + ".py"
    for symptom in patch.impact.symptoms:
        text = f'Traceback (most recent call last):\n  File "{file}", line 3, in f\n{symptom}\n'
        assert patch.name in names(text), symptom


def test_nothing_is_found_in_other_logs() -> None:
    assert names("Epoch 0: 100%|####| 10/10\n`Trainer.fit` stopped: `max_epochs=1` reached.\n") == []
    assert names("RuntimeError: CUDA error: device-side assert triggered\n") == []
    assert names("") == []
    assert DEVICE not in names(MESSAGE + "core")


def test_what_other_programs_say_as_well_needs_the_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(patch for patch in all_patches() if patch.name == DEVICE)
    common = SimpleNamespace(find=None, all_patches=lambda: (_with_symptoms(first, "KeyError: 0"),))
    monkeypatch.setattr(diagnose, "catalog", common)
    frame = f'  File "/x/lightning/{first.targets[0].module.replace(".", "/")}.py", line 3, in f\n'
    other = frame.replace("lightning/", "pytorch_lightning/").replace("lightning/pytorch/", "lightning/")
    assert names("KeyError: 0") == []
    assert names(f"{frame}KeyError: 0") == [first.name]
    assert names(f"{other}KeyError: 0") == [first.name]
    assert names(f"{frame}KeyError: 01") == []


def test_gaps_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    symptom = "Expected all tensors to be on the same device, ... cuda:1 and cuda:0"
    patches = (_with_symptoms(all_patches()[0], symptom),)
    monkeypatch.setattr(diagnose, "catalog", SimpleNamespace(all_patches=lambda: patches))
    said = "Expected all tensors to be on the same device, but found at least two devices, cuda:3 and cuda:0!"
    assert names(said) == [patches[0].name]
    assert names("Expected all tensors to be on the same device") == []


def test_a_description_in_words() -> None:
    (match,) = diagnose.find(diagnose.prepare("No backend is associated with type cpu of device"))
    assert match.record.name == DEVICE and not match.certain


def test_the_line_is_told() -> None:
    (match,) = diagnose.find(diagnose.prepare(f"one\n\n\x1b[31m\x1b[0m\n[rank0]: {MESSAGE}\nfive\n"))
    assert (match.line, match.text, match.certain) == (4, f"[rank0]: {MESSAGE}", True)


def run(capsys: pytest.CaptureFixture[str], path: Path, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    status = cli.main(["diagnose", str(path), "--json", *arguments])
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is (status == 0)
    return status, document["matches"]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.txt"
    log.write_text(TRACEBACK)
    status, (match,) = run(capsys, log, "--requirement", "lightning==2.2.5")
    assert (status, match["name"], match["line"]) == (0, DEVICE, 4)
    assert match["verdicts"] == [{"distribution": "lightning", "version": "2.2.5", "verdict": "pending", "reason": ""}]
    assert "import lightning_patches" in match["advice"] and "2.4.0" in match["advice"]
    status, (match,) = run(capsys, log, "--requirement", "lightning==2.6.6")
    assert (status, match["ruled_out"]) == (1, True)
    assert "lightning 2.6.6 does not have this bug" in match["advice"]
    assert cli.main(["diagnose", str(log), "--requirement", "lightning==2.2.5"]) == 0
    text = capsys.readouterr().out
    assert f"found: {DEVICE} (crash)" in text and f"line 4: {MESSAGE}" in text


def test_what_the_toggle_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.txt").write_text(MESSAGE)
    monkeypatch.setenv("LIGHTNING_PATCHES", f"-{DEVICE}")
    _, (match,) = run(capsys, tmp_path / "log.txt", "--requirement", "lightning==2.2.5")
    assert match["verdicts"][0]["verdict"] == "disabled"
    assert "leaves the patch out" in match["advice"]


def test_bugs_without_a_patch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.txt").write_text("scanner: GHSA-w37p-236h-pfx3 in lightning\n")
    status, (match,) = run(capsys, tmp_path / "log.txt", "--requirement", "lightning==2.6.3")
    assert (status, match["name"], match["patched"]) == (0, "compromised-release", False)
    assert "move to 2.6.4" in match["advice"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for data, status in ((MESSAGE.encode() + b"\xff\xfe", 0), (b"nothing", 1)):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert cli.main(["diagnose", "-", "--requirement", "lightning==2.2.5"]) == status
    assert "No known bug of Lightning shows in it." in capsys.readouterr().out


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", "no_such_log.txt"]) == 2
    assert "no_such_log.txt cannot be read" in capsys.readouterr().err


def _with_symptoms(patch: Any, *symptoms: str) -> Any:

    return patch._replace(impact=Impact(patch.impact.summary, symptoms))
