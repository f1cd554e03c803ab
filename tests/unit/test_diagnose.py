"""``lightning-patches diagnose`` finds symptoms in logs of launchers, terminals and schedulers."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lightning_patches import cli
from lightning_patches.cli.diagnose import candidates, excerpt, known, program, read, verdicts
from lightning_patches.cli.diagnose import frames as frames_index
from lightning_patches.engine import fingerprints
from lightning_patches.known import lookup
from lightning_patches.known.unpatched import UNCOUNTED, UNPATCHED
from lightning_patches.patch import Impact
from lightning_patches.patches import all_patches
from tests.support.variants import ROOT

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
    return [match.record.name for match in found(text)]


def found(text: str) -> list[candidates.Candidate]:
    return candidates.find(read.from_text("log.txt", text))


def own_frame(patch: Any) -> str:
    """Return a frame of Lightning, and one in the code of a patch's bug."""
    special = patch.impact.frames
    place = special[0].strip().strip("/") if special else f"{patch.targets[0].module.replace('.', '/')}.py"
    path = f"/x/lightning/{place if place.endswith('.py') else 'pytorch/' + place + '.py'}"
    path = f"/x/{patch.impact.frames[0]}/x.py" if place.startswith(("torch/", "accelerate/")) else path
    path = path.replace("lightning/", "lightning/pytorch/") if place.startswith(("plugins/", "tuner/")) else path
    outer = "/x/lightning/pytorch/trainer/trainer.py"
    return f'  File "{outer}", line 3, in f\n  File "{path}", line 3, in {place}\n'


@pytest.mark.parametrize("patch", all_patches(), ids=lambda patch: patch.name)
def test_every_symptom_is_found(patch: Any) -> None:
    """Each symptom follows a traceback through the patched file."""
    for symptom in patch.impact.symptoms:
        text = f"{HEAD}{own_frame(patch)}{symptom}\n"
        assert patch.name in names(text), symptom


def test_unrelated_logs_have_no_match() -> None:
    assert names("Epoch 0: 100%|####| 10/10\n`Trainer.fit` stopped: `max_epochs=1` reached.\n") == []
    assert names("RuntimeError: CUDA error: device-side assert triggered\n") == []
    assert names("") == []
    assert DEVICE not in names(MESSAGE + "core")


def test_common_error_matches_only_with_its_frame() -> None:
    frame = '  File "/x/lightning/pytorch/callbacks/finetuning.py", line 3, in f\n'
    other = frame.replace("lightning/pytorch/", "pytorch_lightning/")
    assert names("KeyError: 0") == []
    assert names(f"{frame}KeyError: 0") == ["finetuning-with-lr-finder"]
    assert names(f"{other}KeyError: 0") == ["finetuning-with-lr-finder"]
    assert names(f"{frame}KeyError: 01") == []


@pytest.mark.parametrize(
    ("symptom", "text", "is_there"),
    [
        ("at least ... cuda:1 and cuda:0", "found at least two devices, cuda:3 and cuda:0!", True),
        ("at least ... cuda:1 and cuda:0", "found at least two devices", False),
        ("a ... b", "a" + "x" * 400 + " b", False),
        ("KeyError: 0", "a KeyError: 0, or so", True),
        ("KeyError: 0", "KeyError: 0.5", False),
        ("`monitor`", "its 'monitor'", True),
    ],
)
def test_symptom_matches_with_gaps_quotes_and_device_numbers(symptom: str, text: str, is_there: bool) -> None:
    assert (known.place(known.pieces(symptom), known.normalised(text)) >= 0) is is_there


def test_line_number_is_printed() -> None:
    (match,) = found(f"one\n\n\x1b[31m\x1b[0m\n[rank0]: {MESSAGE}\nfive\n")
    assert (match.line, match.text) == (4, MESSAGE)


def run(capsys: pytest.CaptureFixture[str], path: Path, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    status = cli.main(["diagnose", str(path), "--json", *arguments])
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is (status == 0)
    return status, document["matches"]


def test_diagnose_reads_a_log_and_prints_the_bug_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert text.startswith(f"Known bug {DEVICE} of lightning 2.2.5.\nDo: ") and f"Line 4: {MESSAGE}" in text


def test_deselected_patch_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.txt").write_text(TRACEBACK)
    monkeypatch.setenv("LIGHTNING_PATCHES", f"-{DEVICE}")
    _, (match,) = run(capsys, tmp_path / "log.txt", "--requirement", "lightning==2.2.5")
    assert match["verdicts"][0]["verdict"] == "disabled"
    assert "LIGHTNING_PATCHES leaves it out" in match["advice"]


def test_compromised_release_is_found_in_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.txt").write_text("scanner: GHSA-w37p-236h-pfx3 in lightning\n")
    status, (match,) = run(capsys, tmp_path / "log.txt", "--requirement", "lightning==2.6.3")
    assert (status, match["name"], match["patched"]) == (0, "compromised-release", False)
    assert "Move to Lightning 2.6.4" in match["advice"]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("val_check_interval counts batches instead of optimizer steps", "validation-by-optimizer-steps"),
        ("validate every n optimizer steps with gradient accumulation", "validation-by-optimizer-steps"),
        ("log a dict of metrics with self.log", "log-of-a-dict"),
        ("MPSAccelerator is not available under Rosetta", "mps-in-a-python-for-intel"),
    ],
)
def test_intended_behavior_gets_a_workaround(capsys: pytest.CaptureFixture[str], words: str, name: str) -> None:
    assert cli.main(["diagnose", words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    match = document["matches"][0]
    (feature,) = [feature for feature in UNCOUNTED if feature.name == name]
    assert (match["name"], match["patched"], match["verdicts"], match["would_tell"]) == (name, False, [], "")
    assert feature.do in match["advice"] and feature.do in document["closing"]


@pytest.mark.parametrize(
    ("file", "function", "error", "name"),
    [
        (
            "pytorch/core/module.py",
            "log",
            "ValueError: `self.log(loss, {'a': 0, 'b': 1})` was called, but `dict` values cannot be logged",
            "log-of-a-dict",
        ),
    ],
)
def test_intended_refusal_is_recognized(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str, function: str, error: str, name: str
) -> None:
    traceback = frames(LIGHTNING + "pytorch/trainer/trainer.py", LIGHTNING + file).replace(" in f", f" in {function}")
    document = diagnosed(capsys, tmp_path, f"{traceback}{error}\n")
    (match,) = [match for match in document["matches"] if match["kind"] == "found"]
    assert (match["name"], match["cause"], match["group"]) == (name, True, "feature")
    assert document["verdict"].startswith("No release of Lightning has this: ")


def test_diagnose_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for data, status in ((MESSAGE.encode() + b"\xff\xfe", 0), (b"nothing", 1)):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert cli.main(["diagnose", "-", "--requirement", "lightning==2.2.5"]) == status
    assert "I know no bug that fits this description." in capsys.readouterr().out


def test_missing_file_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", "no_such_log.txt"]) == 2
    assert "no_such_log.txt cannot be read" in capsys.readouterr().err


HEAD = "Traceback (most recent call last):\n"
LIGHTNING = "/env/site-packages/lightning/"


def frames(*files: str) -> str:
    return HEAD + "".join(f'  File "{file}", line 7, in f\n    g()\n' for file in files)


def diagnosed(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> dict[str, Any]:
    (tmp_path / "log.txt").write_text(text)
    cli.main(["diagnose", str(tmp_path / "log.txt"), "--json", "--requirement", "lightning==2.2.5"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


CPU = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n"
GENERATOR = "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)", "prepare-data-without-deadline"),
        (MESSAGE, DEVICE),
    ],
    ids=["watchdog", "bare"],
)
def test_common_error_line_is_never_certain(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, name: str
) -> None:
    document = diagnosed(capsys, tmp_path, text)
    assert {match["kind"] for match in document["matches"]} - {"ruled out"} == {"possible"}
    assert next(match for match in document["matches"] if match["name"] == name)["would_tell"]
    assert document["verdict"].startswith("Perhaps ") and not document["matches"][0]["cause"]


@pytest.mark.parametrize(
    "text",
    [
        frames(LIGHTNING + "pytorch/strategies/ddp.py", "/home/me/net.py") + CPU,
        frames(LIGHTNING + "pytorch/loops/fit_loop.py", "/env/torch/sampler.py") + GENERATOR,
        frames(LIGHTNING + "pytorch/trainer/trainer.py", "/home/me/net.py") + "IndexError: pop from empty list\n",
        frames(LIGHTNING + "pytorch/trainer/trainer.py", "/home/me/net.py") + "KeyError: 0\n",
        frames(LIGHTNING + "pytorch/trainer/trainer.py", "/home/me/net.py")
        + "AttributeError: 'Net' object has no attribute 'sampler'\n",
        "IndexError: pop from empty list\n",
        "KeyError: 0\n",
    ],
)
def test_common_error_counts_only_with_its_frame(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    document = diagnosed(capsys, tmp_path, text)
    assert document["matches"] == [] and document["verdict"].startswith("I don't know this error: `")


@pytest.mark.parametrize(
    "text",
    [
        frames("/home/me/train.py") + CPU,
        frames("/home/me/train.py", "/env/torch/utils/data/sampler.py") + GENERATOR,
        frames("/srv/app/views.py") + "IndexError: pop from empty list\n",
        frames("/home/me/train.py", "/env/transformers/trainer.py") + CPU,
        frames("/home/me/a.py", "/env/google/cloud/_helpers.py")
        + "ModuleNotFoundError: No module named 'pkg_resources'\n",
        frames("/home/me/a.py", "/env/torch/serialization.py")
        + "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so\n"
        + "\tWeightsUnpickler error: Unsupported global: GLOBAL net.Net was not an allowed global by default\n",
        frames("/home/me/loop.py", "/env/torch/utils/data/dataloader.py")
        + "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal "
        + frames("/home/me/collate.py")
        + "RuntimeError: stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor\n",
    ],
    ids=["tensors", "generator", "web view", "transformers", "pkg_resources", "torch.load", "collate"],
)
def test_complete_traceback_elsewhere_excludes_a_bug(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    document = diagnosed(capsys, tmp_path, text)
    assert (document["matches"], document["ok"]) == ([], False)


def test_worker_error_and_its_consequence_are_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outer = frames("/home/me/train.py", LIGHTNING + "pytorch/utilities/data.py", "/env/torch/dataloader.py")
    inner = "Original " + frames("/env/torch/collate.py")
    error = "RuntimeError: stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor\n"
    text = f"{outer}RuntimeError: Caught RuntimeError in DataLoader worker process 0.\n{inner}{error}"
    assert [match["name"] for match in diagnosed(capsys, tmp_path, text)["matches"]] == ["plain-batch-sampler"]


REFUSED = (
    frames("/home/me/train.py", LIGHTNING + "pytorch/core/saving.py", LIGHTNING + "fabric/utilities/cloud_io.py")
    + "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded\n"
    + "\tWeightsUnpickler error: Unsupported global: GLOBAL __main__.Config was not an allowed global by default\n"
)
RESTORING = "Restoring states from the checkpoint path at /data/me/runs/last.ckpt\n"
HINT = (
    "lightning_patches: '/data/me/runs/last.ckpt' holds objects that torch does not load by default: __main__.Config.\n"
)
APPLIED = "lightning_patches: lightning 2.2.5: 46 fixes ('lightning-patches status' lists them)\n"
OUR_FRAME = '  File "/env/lightning_patches/patches/own_checkpoints.py", line 7, in _load\n    original()\n'


@pytest.mark.parametrize("release", ["2.0.9", "2.2.5", "2.6.0", "2.6.6"])
@pytest.mark.parametrize(
    ("text", "directory"),
    [
        (RESTORING + REFUSED, "/data/me/runs"),
        (HINT + REFUSED, "/data/me/runs"),
        (REFUSED.replace("    g()", '    Net.load_from_checkpoint("runs/a b.ckpt")', 1), "runs"),
        (REFUSED, "DIRECTORY OF THE CHECKPOINT"),
    ],
    ids=["resumed", "our hint", "source", "unnamed"],
)
def test_checkpoint_advice_names_its_directory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, directory: str, release: str
) -> None:
    log = tmp_path / "log.txt"
    call = f"`lightning_patches.trust_checkpoints({directory!r})` below `import lightning_patches`"
    for with_patches in (False, True):
        log.write_text((APPLIED if with_patches else "") + text)
        assert cli.main(["diagnose", str(log), "--json", "--requirement", f"lightning=={release}"]) == 0
        closing = json.loads(capsys.readouterr().out)["closing"]
        assert call in closing
        assert not (with_patches and "this fixes the error if the same run wrote the checkpoint" in closing)
    lines = text.splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if "UnpicklingError" in line)
    log.write_text("".join([*lines[:at], OUR_FRAME, *lines[at:]]))
    cli.main(["diagnose", str(log), "--json", "--requirement", f"lightning=={release}"])
    closing = json.loads(capsys.readouterr().out)["closing"]
    assert call in closing and "this fixes it" not in closing


def test_patched_program_is_not_told_to_enable_patches(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    closing = diagnosed(capsys, tmp_path, APPLIED + TRACEBACK)["closing"]
    assert closing.startswith(f"`lightning-patches status {DEVICE}`, run in its environment, shows why")
    none = APPLIED.replace("46 fixes", "no fixes")
    assert "import lightning_patches" in diagnosed(capsys, tmp_path, none + TRACEBACK)["closing"]


@pytest.mark.parametrize("patch", all_patches(), ids=lambda patch: patch.name)
def test_enabled_patch_is_not_suggested(capsys: pytest.CaptureFixture[str], tmp_path: Path, patch: Any) -> None:
    """Covers the answers about all patches."""
    name = patch.name.replace("-", "_")
    own = f'  File "/env/lightning_patches/patches/some/{name}.py", line 7, in f\n    original()\n'
    for symptom in patch.impact.symptoms:
        text = f"{HEAD}{own_frame(patch)}{own}{symptom}\n"
        document = diagnosed(capsys, tmp_path, text)
        shown = [document["closing"], *(one["advice"] for one in document["matches"] if one["name"] == patch.name)]
        assert not any("run train.py" in one or "at the top of the script, or" in one for one in shown), (
            symptom,
            shown,
        )


@pytest.mark.parametrize(
    ("text", "pasted"),
    [
        (
            TRACEBACK,
            "To paste: A known bug of lightning 2.2.5, https://github.com/Lightning-AI/pytorch-lightning/issues/",
        ),
        (HEAD + '  File "a.py", line 1, in f\nValueError: no\n', "does not know this error."),
        (MESSAGE, f"To paste: Perhaps {DEVICE} (lightning-patches"),
        ("lightning_patches: rank 1 has left; rank 0 in barrier 2.\n", ": rank 1 has left."),
    ],
    ids=["found", "nothing", "possible", "hang"],
)
def test_answer_ends_with_a_line_to_paste(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, pasted: str
) -> None:
    document = diagnosed(capsys, tmp_path, text)
    cli.main(["diagnose", str(tmp_path / "log.txt"), "--requirement", "lightning==2.2.5"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert pasted in last and last == f"To paste: {document['to_paste']}"


def test_line_to_paste_has_nothing_of_the_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    secret = "AKIA-SECRET-KEY"
    for text in (
        TRACEBACK.replace(MESSAGE, f"{MESSAGE} {secret}"),
        HEAD + f'  File "/home/{secret}/a.py", line 1, in f\n{secret}Error: {secret}\n',
        MESSAGE + f" {secret}",
        f"lightning_patches: rank 1 ended with an error: ValueError: {secret}; rank 0 in barrier 2.\n",
        frames(f"/home/{secret}/a.py", LIGHTNING + "pytorch/callbacks/finetuning.py") + "KeyError: 0\n",
    ):
        assert secret not in diagnosed(capsys, tmp_path, text)["to_paste"], text


@pytest.mark.parametrize("patch", all_patches(), ids=lambda patch: patch.name)
def test_first_line_of_the_error_finds_the_patch(patch: Any) -> None:
    """The line alone is enough if it is unique; otherwise a frame in the code with the bug is needed."""
    as_others = ("checkpoint-exists-on-rank-zero", "compiled-names", "rich-progress-bar-resumed")
    as_others += ("hyperparameters-made-in-method", "rich-empty-sanity-check")  # their errors are not unique
    as_others += ("mlflow-temporary-directory", "cli-config-without-log-dir", "predict-batch-sampler-constructor")
    # A KeyError of a parameter's name, and an error of mixed devices, may come from any program.
    nameless = ("compiled-sharded-checkpoint", "torchscript-check-inputs")
    assert patch.impact.error or patch.group != "crash" or patch.name in nameless
    if patch.impact.error and patch.name not in as_others:
        source = "    initial_device = next(model.parameters()).device\n" * (patch.impact.error == "StopIteration")
        shown = patch.impact.error.replace("...", "some")
        assert patch.name in names(f"{HEAD}{own_frame(patch)}{source}{shown}\n")


def test_control_characters_of_a_log_are_removed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evil = "\x07\u202e\x9b31m"
    path = tmp_path / f"a{evil}\nfound: all is well.log"
    path.write_text(f"{evil} {MESSAGE} \x1b]0;title\n")
    other = tmp_path / "b.log"
    other.write_text("Epoch 0\n")
    assert cli.main(["diagnose", str(path), str(other), "--requirement", "lightning==2.2.5"]) == 0
    shown = capsys.readouterr().out
    assert DEVICE in shown and not set("\x07\u202e\x9b\x1b") & set(shown)
    assert not any(line.startswith("found: all is well") for line in shown.splitlines())
    assert cli.main(["diagnose", str(tmp_path / f"none{evil}.log")]) == 2
    assert not set("\x07\u202e\x9b") & set(capsys.readouterr().err)


def test_unknown_old_release_is_not_excluded(tmp_path: Path) -> None:
    """No bug is found either, because the release is unknown."""
    site = tmp_path / "site"
    (site / "pytorch_lightning" / "utilities").mkdir(parents=True)
    (site / "pytorch_lightning" / "__init__.py").touch()
    (site / "pytorch_lightning-1.7.7.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: pytorch-lightning\nVersion: 1.7.7\n"
    (site / "pytorch_lightning-1.7.7.dist-info" / "METADATA").write_text(metadata)
    text = TRACEBACK.replace("lightning/pytorch/", "pytorch_lightning/")
    (tmp_path / "train.log").write_text(text)
    command = [sys.executable, "-m", "lightning_patches", "diagnose", "--json", str(tmp_path / "train.log")]
    variables = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{Path(cli.__file__).parents[2]}"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    document = json.loads(done.stdout)
    (match,) = document["matches"]
    assert (match["kind"], match["ruled_out"]) == ("possible", False), match
    assert "pytorch-lightning 1.7.7 was not checked for this bug" in match["advice"]
    assert "does not have this bug" not in done.stdout


def test_damaged_reports_of_a_hang_are_skipped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = {"time": 1.0, "verdict": "rank 1 has not moved\x07\u202e for 3 s", "ranks": []}
    spoilt = [{**whole, "time": "x"}, {**whole, "ranks": 5}, {**whole, "verdict": 5}, {"time": None}, [], 7]
    for name in ("hang-a.jsonl", "hang-b.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in [whole, *spoilt]))
    assert cli.main(["diagnose", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "rank 1 has not moved" in shown and not set("\x07\u202e") & set(shown)


def test_match_is_only_possible_when_the_release_is_unknown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert diagnosed(capsys, tmp_path, TRACEBACK)["matches"][0]["kind"] == "found"
    (tmp_path / "log.txt").write_text(TRACEBACK)
    _, (match,) = run(capsys, tmp_path / "log.txt", "--requirement", "lightning==2.7.0")
    assert match["kind"] == "possible" and "--requirement" in match["would_tell"]


MASKING = "RuntimeError: Please call `iter(combined_loader)` first.\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
TEARDOWN = frames("/home/me/train.py", LIGHTNING + "pytorch/utilities/combined_loader.py") + MASKING


@pytest.mark.parametrize("prefix", ["", "[rank1]: "])
def test_masking_error_is_never_the_cause(capsys: pytest.CaptureFixture[str], tmp_path: Path, prefix: str) -> None:
    inside = frames(LIGHTNING + "pytorch/loops/fit_loop.py", "/env/torch/utils/_device.py") + GENERATOR
    text = "".join(prefix + line for line in (inside + DURING + TEARDOWN).splitlines(keepends=True))
    document = diagnosed(capsys, tmp_path, text)
    kinds = {match["name"]: match["kind"] for match in document["matches"]}
    assert document["matches"][0]["name"] == "init-module-data"
    assert [match["name"] for match in document["matches"] if match["cause"]] == ["init-module-data"]
    assert kinds["dataloader-error-unmasked"] == "follows" and kinds.get("worker-shutdown-error") != "found"
    assert document["closing"].startswith("Put `import lightning_patches` at the top of the script")


def test_user_error_behind_a_masking_error_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = frames(LIGHTNING + "pytorch/loops/fit_loop.py", "/home/me/data.py") + "FileNotFoundError: no such images\n"
    document = diagnosed(capsys, tmp_path, own + DURING + TEARDOWN)
    assert document["error"] == "FileNotFoundError: no such images"
    assert document["closing"] == "Look at /home/me/data.py, line 7, the last line of your code in the traceback."
    assert not any(match["cause"] for match in document["matches"])
    assert cli.main(["diagnose", str(tmp_path / "log.txt"), "--requirement", "lightning==2.2.5"]) == 0
    assert capsys.readouterr().out.startswith(
        "I don't know the first error (the later ones are its consequences): `FileNotFound"
    )


def test_large_log_is_answered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Progress bars and rank prefixes, several files, one of them compressed."""
    bar = b"\r".join(b"Epoch 3:  %d%%|###  | %d/100 [00:10<00:20, 3.1it/s, train_loss=0.5]" % (i, i) for i in range(99))
    line = bar + b"\n2026-01-02 03:04:05,678 INFO [rank0]: worker saves weights, learning rate 0.1, device cuda:0\n"
    noise = line * (24 * 1024 * 1024 // len(line))
    (tmp_path / "big.log").write_bytes(noise + TRACEBACK.encode() + line * 1000)
    with gzip.open(tmp_path / "big.log.gz", "wb", 1) as file:
        file.write(noise + TEARDOWN.encode())
    names_ = [str(tmp_path / name) for name in ("big.log", "big.log.gz")]
    assert cli.main(["diagnose", *names_, "--json", "--requirement", "lightning==2.2.5"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {match["name"]: match for match in document["matches"]}
    assert found[DEVICE]["line"] == noise.count(b"\n") + 4 and found[DEVICE]["cause"]
    assert found["dataloader-error-unmasked"]["file"].endswith(".gz")


UNLIKE = str.maketrans("0123456789", "ghijklmnop")
LOG = {
    "repeated": lambda step: b"Epoch 0: validation batch %d, checkpoint saved\n" % step,
    "unlike": lambda step: hashlib.sha256(b"%d" % step).hexdigest().translate(UNLIKE).encode() + b"\n",
    "bars": lambda step: b"Epoch 0: %d%%|### | %d/100 [00:10<00:20]\r" % (step, step),
    "not text": lambda step: b"\xff\xfe\x00 %d \xe2\x96\n" % step,
    "one line": lambda step: b"worker %d; " % step,
}


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("kind", LOG)
def test_error_at_a_block_boundary_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, ends: bytes
) -> None:
    """The error is at the edge of the second block, in logs with equal and with different lines."""
    monkeypatch.setattr(excerpt, "BLOCK", 100_000)
    monkeypatch.setattr(excerpt, "MAX_BYTES", 240_000)
    monkeypatch.setattr(excerpt, "END", 10_000)
    error = ("\n" + TRACEBACK).encode().replace(b"\n", ends)
    noise = b"".join(map(LOG[kind], range(25_000)))
    assert len(noise) > 250_000
    for before in (*range(200_000 - len(error), 200_000 + 1000, 397), 0):
        log = noise[:before] + error + noise[before:]
        path = tmp_path / "log.gz"
        with gzip.open(path, "wb", 1) as file:
            file.write(log)
        (one,) = read.logs([str(path)])
        (match,) = candidates.find(one)
        assert (match.record.name, match.ground) == (DEVICE, "frame"), before
        assert match.line == log[: log.index(b"RuntimeError")].count(b"\n") + 1


@pytest.mark.parametrize("needle", excerpt.needles(), ids=lambda needle: needle.decode())
def test_known_error_is_found_in_a_large_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, needle: bytes) -> None:
    monkeypatch.setattr(excerpt, "MAX_BYTES", 50_000)
    monkeypatch.setattr(excerpt, "END", 10_000)
    bars = b"".join(b"Epoch 0: %d%%|### | train_loss=0.%d\n" % (n, n) for n in range(2000))
    (tmp_path / "log.txt").write_bytes(bars + b"x " + needle + b" y\n" + bars)
    (one,) = read.logs([str(tmp_path / "log.txt")])
    assert needle.decode().strip() in one.text and one.left_out


def test_repeated_lines_hide_no_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    warning = "UserWarning: It looks like Weights only load failed, as Watchdog caught collective operation timeout\n"
    document = diagnosed(capsys, tmp_path, warning * 20_000 + TRACEBACK)
    assert document["matches"][0]["name"] == DEVICE and document["matches"][0]["line"] == 20_004


def test_words_in_several_arguments_are_one_description(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", *["epoch", "0", "is", "short"], "--json"]) == 0
    assert "lr-finder-train-loader" in [match["name"] for match in json.loads(capsys.readouterr().out)["matches"]]


@pytest.mark.parametrize(
    ("words", "name", "what"),
    [
        ("gradients differ from rank to rank", "fabric-submodule-sync", "GradientSyncCheck"),
        ("teacher and student diverge across ranks", "fabric-submodule-sync", "GradientSyncCheck"),
        ("batches of one item", "plain-batch-sampler", "length of a batch"),
        ("batch size is 1 with batch_sampler", "plain-batch-sampler", "length of a batch"),
        ("epoch 0 is short, its validation is missing", "lr-finder-train-loader", "num_training_steps"),
        ("no validation in the first epoch", "lr-finder-train-loader", "num_training_steps"),
    ],
)
def test_silent_bug_names_its_evidence(capsys: pytest.CaptureFixture[str], words: str, name: str, what: str) -> None:
    assert cli.main(["diagnose", words, "--json", "--requirement", "lightning==2.2.5"]) == 0
    (match,) = [match for match in json.loads(capsys.readouterr().out)["matches"] if match["name"] == name]
    assert match["kind"] == "possible" and what in match["would_tell"]


@pytest.mark.parametrize(
    ("words", "is_hang"),
    [
        ("training hangs at start", True),
        ("ddp is stuck with two gpus", True),
        ("多卡 DDP 卡住", True),
        ("epoch 0 is short", False),
        ("what hangover", False),
        ("it is stuck", True),
        ("nothing happens", True),
        ("training freezes", True),
        ("the loss is stuck at 0.69", False),
        ("running_mean of the frozen backbone changes", False),
    ],
)
def test_words_for_a_hang_are_answered_with_the_watch(
    capsys: pytest.CaptureFixture[str], words: str, is_hang: bool
) -> None:
    cli.main(["diagnose", words])
    shown = capsys.readouterr().out
    assert ("\nDo: If several ranks hang: `LIGHTNING_PATCHES_HANG_TIMEOUT=300 lightning-pa" in shown) is is_hang
    assert ("`lightning-patches doctor`, run in the same place" in shown) is is_hang
    cli.main(["diagnose", words, "--json"])
    assert json.loads(capsys.readouterr().out)["closing"].startswith("If several ranks hang:") is is_hang


def test_words_for_a_hang_find_hangs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", "the terminal stands still"]) == 1
    assert "frozen-batch-norm" not in capsys.readouterr().out
    assert cli.main(["diagnose", "running_mean of the frozen backbone changes"]) == 0
    assert "frozen-batch-norm" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["zebra crossing", "it is stuck"])
def test_description_gets_no_request_for_a_traceback(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert cli.main(["diagnose", words]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith(("I know no bug that fits this description.\nDo: ", "A program that hangs.\nDo: "))
    assert "2>&1" not in shown


@pytest.mark.parametrize(
    ("line", "status", "words", "not_words"),
    [
        (
            "kill -9 $$",
            137,
            ["(SIGKILL).", "SIGKILL ended the program", "Do: Often the cause is the out-of-memory killer"],
            ["describe it"],
        ),
        ("kill -11 $$", 139, ["(SIGSEGV).", "SIGSEGV ended the program"], ["out-of-memory", "describe it"]),
        ("exit 3", 3, ["ended with status 3.", "its standard error has no error"], ["SIG", "describe it"]),
        ("exit 200", 200, ["ended with status 200."], ["(SIG"]),
        ("true", 0, ["describe it"], ["ended with status", "traceback"]),
    ],
)
def test_end_of_a_command_without_an_error_is_explained(
    line: str, status: int, words: list[str], not_words: list[str]
) -> None:
    command = [sys.executable, "-m", "lightning_patches", "diagnose", "--", "sh", "-c", line]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == status
    assert all(word in done.stdout for word in words), done.stdout
    assert not any(word in done.stdout for word in ["2>&1", *not_words]), done.stdout


def test_json_is_all_that_standard_output_has() -> None:
    command = [
        sys.executable,
        "-m",
        "lightning_patches",
        "diagnose",
        "--json",
        "--",
        "sh",
        "-c",
        "echo own; echo err >&2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout)["matches"] == [] and sorted(done.stderr.split()) == ["err", "own"]
    done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *command], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout)["matches"] == []


def test_missing_input_is_requested(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose"]) == 2
    assert "WORDS in quotes" in capsys.readouterr().err
    assert cli.main(["diagnose", "stuck"]) == 2
    assert (
        'Describe the problem in several words: `lightning-patches diagnose "it is stuck"`' in capsys.readouterr().err
    )
    assert cli.main(["diagnose", "train.log"]) == 2
    assert "several words" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("outer", "do"),
    [
        ('  File "/home/me/finetune.py", line 9, in <module>\n', "`lightning-patches run finetune.py`"),
        (
            '  File "/opt/env/lib/python3.11/site-packages/fire/core.py", line 9, in f\n',
            "Put `import lightning_patches`",
        ),
        ('  File "<string>", line 1, in <module>\n', "Put `import lightning_patches` at the top of the script"),
        (
            '  File "<frozen runpy>", line 198, in _run_module_as_main\n'
            '  File "/env/lib/python3.11/site-packages/mypkg/train.py", line 9, in <module>\n',
            "`lightning-patches run -m mypkg.train`",
        ),
        (
            '  File "<frozen runpy>", line 198, in _run_module_as_main\n'
            '  File "/home/me/mypkg/__main__.py", line 9, in <module>\n',
            "`lightning-patches run -m mypkg`",
        ),
        (
            '  File "<frozen runpy>", line 198, in _run_module_as_main\n'
            '  File "/home/me/pkg/a.py", line 9, in <module>\n',
            "Put `lightning-patches run` instead of `python`",
        ),
        ('  File "/env/bin/mytool", line 8, in <module>\n', "`lightning-patches run -- mytool`"),
        ('  File "/tmp/ipykernel_71/123.py", line 8, in <module>\n', "into the first cell"),
        ("  Cell In[3], line 5\n", "into the first cell"),
    ],
)
def test_advice_fits_the_launcher(capsys: pytest.CaptureFixture[str], tmp_path: Path, outer: str, do: str) -> None:
    text = TRACEBACK.replace("last):\n", f"last):\n{outer}")
    assert do in diagnosed(capsys, tmp_path, text)["do"]


def test_under_torchrun_the_import_is_put_into_the_script(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = TRACEBACK.replace("last):\n", 'last):\n  File "/home/me/train.py", line 9, in <module>\n')
    text += "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    document = diagnosed(capsys, tmp_path, text)
    assert document["matches"][0]["name"] == DEVICE and "at the top of train.py" in document["do"]


def test_opt_in_patch_is_suggested_with_the_toggle(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = frames("/home/me/train.py", LIGHTNING + "fabric/loggers/csv_logs.py").replace("in f", "in <module>", 1)
    text += "ValueError: dict contains fields not in fieldnames: 'b'\n"
    (tmp_path / "log.txt").write_text(text)
    cli.main(["diagnose", str(tmp_path / "log.txt"), "--json", "--requirement", "lightning==2.2.0"])
    do = "`lightning-patches run --patches default,csv-logger-own-file train.py`, or upgrade to Lightning 2.2.1."
    assert json.loads(capsys.readouterr().out)["closing"] == do


def test_local_script_is_named_by_its_path(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my runs").mkdir()
    script = tmp_path / "my runs" / "fine tune.py"
    script.touch()
    monkeypatch.chdir(tmp_path)
    text = TRACEBACK.replace("last):\n", f'last):\n  File "{script}", line 9, in <module>\n')
    assert "`lightning-patches run 'my runs/fine tune.py'`" in diagnosed(capsys, tmp_path, text)["closing"]


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("python train.py --lr 1", "train.py --lr 1"),
        ("/env/bin/python3.11 -m my.train", "-m my.train"),
        ("torchrun --nproc-per-node 2 train.py", "-- torchrun --nproc-per-node 2 train.py"),
        ("python -u train.py", "-- python -u train.py"),
        ("python", "-- python"),
    ],
)
def test_command_is_accepted_as_by_run(command: str, typed: str) -> None:
    assert program.as_typed(command.split()) == typed


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 900, b"Epoch 0: 100%\nbetter than ever, exit 0\n" * 90])
def test_log_without_an_error_gets_suggestions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "log.txt").write_bytes(content)
    assert cli.main(["diagnose", str(tmp_path / "log.txt")]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("The log shows no error.\nDo: ") and "describe it" in shown


def test_unknown_error_in_a_long_log_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = frames("/home/me/data.py") + "FileNotFoundError: no such images\n"
    for before, after in ((0, 0), (0, 3000), (3000, 0), (3000, 3000)):
        (tmp_path / "log.txt").write_text(
            "a line of a log\n" * before + error + "another line\n" * after + "end\n" * 200
        )
        assert cli.main(["diagnose", str(tmp_path / "log.txt")]) == 1
        assert capsys.readouterr().out.startswith("I don't know this error: `FileNotFoundError"), (before, after)


def test_start_line_is_not_a_hang_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every log of a patched program has a start line."""
    ours = "lightning_patches: lightning 2.2.5: 46 fixes ('lightning-patches status' lists them)\n"
    for name in ("train.log", "hang-train.log"):
        (tmp_path / name).write_text(ours + "Epoch 0: 100%\n")
        assert cli.main(["diagnose", str(tmp_path / name), "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["hangs"] == []
    (tmp_path / "train.log").write_text(ours + TRACEBACK)
    document = diagnosed(capsys, tmp_path, ours + TRACEBACK)
    assert document["hangs"] == [] and document["matches"][0]["name"] == DEVICE
    report = "lightning_patches: rank 1 has not moved for 3 s; rank 0 in barrier 2.\n  missing: rank 1.\n\n"
    (tmp_path / "hang-node-17.txt").write_text(report)
    assert cli.main(["diagnose", str(tmp_path / "hang-node-17.txt"), "--json"]) == 0
    assert [one["verdict"] for one in json.loads(capsys.readouterr().out)["hangs"]] == [report[19:].partition(".")[0]]


JOINS = [f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/2" for rank in range(2)]
REGISTERED = "distributed_backend=gloo\nAll distributed processes registered. Starting with 2 processes"
INTERRUPTED = HEAD + '  File "train.py", line 6, in <module>\n    time.sleep(9)\nKeyboardInterrupt\n'
CANCELLED = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***"
WORDY = "UserWarning: pkg_resources is deprecated\n" * 30


def started(capsys: pytest.CaptureFixture[str], tmp_path: Path, *logs: str) -> tuple[Any, str]:
    for number, log in enumerate(logs):
        (tmp_path / f"{number}.log").write_text(log)
    files = [str(tmp_path / f"{number}.log") for number in range(len(logs))]
    status = cli.main(["diagnose", *files, "--json", "--requirement", "lightning==2.2.5"])
    document = json.loads(capsys.readouterr().out)
    assert (status, document["matches"]) == (1, []) or document["start"] is None
    return document["start"], document["closing"]


@pytest.mark.parametrize(
    ("logs", "ranks", "words"),
    [
        ([JOINS[0]], [0], "Nothing shows that rank 1 of 2 joined"),
        ([WORDY + "1%\r2%\r\n" + JOINS[0] + "\n" + WORDY], [0], "rank 1 of 2"),
        ([JOINS[0] + "\n" + INTERRUPTED], [0], "rank 1 of 2"),
        ([f"[default0]:{JOINS[0]}\n{CANCELLED}"], [0], "rank 1 of 2"),
        (["\n".join(JOINS)], [0, 1], "All 2 ranks log that they join"),
        ([JOINS[0], JOINS[1]], [0, 1], "All 2 ranks log that they join"),
        (["\n".join([*JOINS, REGISTERED, JOINS[0]])], [0], "rank 1 of 2"),
        ([JOINS[0].replace("/2", "/12")], [0], "Only 1 of 12 ranks"),
        (["\n".join(line.replace("Initializing distributed", "initializing ddp") for line in JOINS)], [0, 1], "All 2"),
    ],
    ids=["rank zero", "warnings", "Ctrl-C", "time limit", "all", "a log for each", "the second start", "many", "1.x"],
)
def test_log_that_ends_at_the_rendezvous_is_a_start_up_hang(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, logs: list[str], ranks: list[int], words: str
) -> None:
    start, closing = started(capsys, tmp_path, *logs)
    assert start["ranks"] == ranks and words in start["words"]
    assert "GLOBAL_RANK: 0" in start["text"]
    log = Path(start["file"]).read_bytes().decode().split("\n")
    assert start["text"] == log[start["line"] - 1].strip()
    assert closing.startswith("If the program hung: `LIGHTNING_PATCHES_HANG_TIMEOUT=300 lightning-patches")
    assert cli.main(["diagnose", str(tmp_path / "0.log")]) == 1
    if start["file"].endswith("0.log") and len(logs) == 1:
        shown = capsys.readouterr().out
        assert shown.startswith("The program may hang at its start.") and closing in shown


@pytest.mark.parametrize(
    "logs",
    [
        ["\n".join([*JOINS, REGISTERED])],
        ["\n".join([*JOINS, REGISTERED, "Epoch 3: 10%"])],
        [JOINS[0] + "\n" + REGISTERED, JOINS[1]],
        [JOINS[0] + "\nValueError: no data\n"],
        [JOINS[0], frames("/home/me/data.py") + "FileNotFoundError: no such images\n"],
        [JOINS[0] + "\n[rank: 1] Child process with PID 7 terminated with code -9. Forcefully terminating all other"],
        [JOINS[0].replace("/2", "/1")],
        [JOINS[0] + "\nLOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]\n"],
        ["Epoch 3: 10%\n"],
        ["lightning_patches: 2 of 2 ranks are watched for hangs.\n" + JOINS[0]],
        ["\n".join([*JOINS, "loading the data", "ready"])],
        ["\n".join([JOINS[0], "step 1 loss=0.3"])],
    ],
    ids=[
        *("registered", "trains", "goes on", "error", "error of another", "killed", "alone", "gpu", "none"),
        "watched",
        "muted",
        "steps",
    ],
)
def test_log_past_the_start_is_not_a_start_up_hang(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, logs: list[str]
) -> None:
    """Lines after all ranks have joined, or about steps and losses, show that the program runs."""
    start, closing = started(capsys, tmp_path, *logs)
    assert start is None and "If the program hung" not in closing


def test_warning_needs_no_traceback(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (match,) = diagnosed(capsys, tmp_path, "Learning rate set to 0.00025\n")["matches"]
    assert match["kind"] == "possible" and "traceback" not in match["would_tell"]


def test_program_is_run_and_its_end_is_explained(tmp_path: Path) -> None:
    program = f"import sys; print('its own'); sys.stderr.write({TRACEBACK!r}); sys.exit(7)"
    command = [sys.executable, "-m", "lightning_patches", "diagnose", "--requirement", "lightning==2.2.5"]
    done = subprocess.run(
        [*command, "--", sys.executable, "-c", program, "--json"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 7
    assert done.stderr == TRACEBACK
    assert done.stdout.startswith("its own\n") and "ended with status 7" in done.stdout
    assert f"Known bug {DEVICE}" in done.stdout


def _with_symptoms(patch: Any, *symptoms: str) -> Any:

    return patch._replace(impact=Impact(patch.impact.summary, symptoms))


def test_unfixed_bug_of_1x_is_described(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    from pytorch_lightning.utilities.cli import LightningCLI
  File "/env/site-packages/pytorch_lightning/utilities/cli.py", line 36, in <module>
    from jsonargparse.actions import _ActionSubCommands
ImportError: cannot import name '_ActionSubCommands' from 'jsonargparse.actions' (/env/jsonargparse/actions.py)
"""
    (tmp_path / "train.log").write_text(told)
    assert cli.main(["diagnose", "--requirement", "pytorch-lightning==1.5.10", str(tmp_path / "train.log")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("Known bug command-line-of-1-5") and "Do: Move to Lightning 1.6.5" in shown
    for told in (
        "WARNING: Ignoring version 1.6.5 of pytorch-lightning since it has invalid metadata:",
        "ERROR: Requested pytorch-lightning==1.6.5 from file:///w/pytorch_lightning-1.6.5-py3-none-any.whl has invalid "
        "metadata: .* suffix can only be used with `==` or `!=` operators",
    ):
        (tmp_path / "pip.log").write_text(f"{told}\n    torch (>=1.8.*)\n           ~~~~~~^\n")
        assert cli.main(["diagnose", str(tmp_path / "pip.log")]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "metadata-of-1x" in shown and "pip<24.1 installs it" in shown


SITE = "/opt/env/lib/python3.11/site-packages/lightning/"


@pytest.mark.parametrize(
    "cell",
    [
        "[<ipython-input-5-abc>](https://localhost:8080/#) in <cell line: 1>()",
        "[/tmp/ipython-input-1-123.py](https://localhost:8080/#) in <cell line: 0>()",
        "File ~/.ipykernel/1234/command-567-890:1",
        "File <command-123>:1",
    ],
)
def test_cell_of_colab_or_databricks_counts_as_notebook(cell: str) -> None:
    head = f"TypeError         Traceback (most recent call last)\n{cell}\n----> 1 trainer.fit(model)\n\n"
    own = f"{SITE.replace('lightning/', 'torch/nn/module.py')} in call(self)\n      1 a\n----> 2 b\n\nTypeError: x\n"
    log = read.from_text("", head + own)
    assert log.facts.start.how == "notebook" and len(log.raised[0].frames) == 2


def test_words_get_the_release_that_they_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = "the first epoch has fewer steps after LearningRateFinder"
    assert cli.main(["diagnose", f"I use Lightning 2.5.1: {words}"]) == 0
    assert capsys.readouterr().out.startswith("Perhaps lr-finder-train-loader of lightning 2.5.1.\n")
    assert cli.main(["diagnose", f"I use Lightning 2.5.6: {words}"]) == 1
    assert "Ruled out, since the release does not have it: lr-finder-train-loader" in capsys.readouterr().out


def test_script_without_findings_is_not_a_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from lightning.pytorch import Trainer\n\nTrainer(max_epochs=1)\n")
    assert cli.main(["diagnose", str(tmp_path / "train.py")]) == 1
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.endswith("train.py uses no name that Lightning 2.x has removed.") and "diagnose -- python" in second


def test_pytest_summary_line_is_an_error() -> None:
    line = "FAILED test_it.py::test_it - RuntimeError: No backend type associated with device ..."
    (error,) = read.from_text("", line).raised
    assert error.words == "RuntimeError: No backend type associated with device ..."


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        ("- lightning: 2.1.3\n", ["2.1.3"]),
        ("        - pytorch-lightning: 2.1.3\n", ["2.1.3"]),
        ("#- PyTorch Lightning Version (e.g., 1.5.0): 2.3.0\n", ["2.3.0"]),
        ("Successfully installed lightning-2.2.1 lightning-utilities-0.11.2\n", ["2.2.1"]),
        ("Requirement already satisfied: lightning in /opt/env/lib (2.2.4)\n", ["2.2.4"]),
        ("pip install 'lightning[extra]==2.2.0'\n", ["2.2.0"]),
        ("pytorch-lightning         2.1.2    pyhd8ed1ab_0    conda-forge\n", ["2.1.2"]),
        ('  File "/opt/conda/pkgs/lightning-2.1.4-pyhd8ed1ab_0/x.py", line 3, in f\n', ["2.1.4"]),
        ("Lightning automatically upgraded your loaded checkpoint from v1.9.5 to v2.1.1\n", ["2.1.1"]),
        ("requirements: lightning>=2.1, lightning-utilities 2.0.0\n", []),
        ("I use Lightning 2.1.3, torch 2.3.1\n", ["2.1.3"]),
        ("PL version 2.2.1 with torch 2.1.0\n", ["2.2.1"]),
        ("lightning.__version__ is '2.2.1'\n", ["2.2.1"]),
        ("Lightning with torch 2.1.0, torchmetrics 2.1.1, CUDA 12.1.1; Lightning on PyTorch (2.1.0)\n", []),
    ],
)
def test_release_is_read_from_the_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, releases: list[str]
) -> None:
    (tmp_path / "log.txt").write_text(text + TRACEBACK)
    cli.main(["diagnose", str(tmp_path / "log.txt"), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["written_by"]["releases"] == releases
    assert document["matches"][0]["name"] == DEVICE
    assert document["matches"][0]["certain"] is bool(releases)
    assert all(f" {release}." in document["verdict"] for release in releases)


@pytest.mark.parametrize(
    ("words", "releases"),
    [
        ("upgraded PyTorch Lightning from 2.2.1 to 2.2.5", ("2.2.1", "2.2.5")),
        ("I use Lightning 2.6", ("2.6.0", "2.6.1", "2.6.4", "2.6.5", "2.6.6")),
        ("lightning==2.5", ("2.5.0",)),
    ],
)
def test_releases_are_read_from_words(words: str, releases: tuple[str, ...]) -> None:
    assert read.from_text("", words).facts.releases == releases


def test_frame_index_has_all_releases_and_is_small() -> None:
    data = (Path(frames_index.__file__).parent / "frames.json").read_text()
    assert set(fingerprints.known_releases()) <= set(json.loads(data)["releases"]) and len(data) <= 150_000


def test_release_without_the_bug_is_excluded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("- lightning: 2.5.2\n" + TRACEBACK)
    assert cli.main(["diagnose", str(tmp_path / "log.txt")]) == 1
    assert capsys.readouterr().out.startswith("I don't know this error: `RuntimeError: No backend type")


@pytest.mark.parametrize(
    "text",
    [
        "lightning==2.6.3\n",
        "- pytorch-lightning: 2.6.2\n",
        "Successfully installed lightning-2.6.2\n",
        "Lightning 2.6.3\n",
        "PL 2.6.3\n",
        "lightning version: 2.6.3\n",
        "we went from PyTorch Lightning 2.6.1 to 2.6.2\n",
    ],
)
def test_compromised_release_is_reported_first(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    for log in (text, text + TRACEBACK, TRACEBACK + text):
        (tmp_path / "log.txt").write_text(log)
        assert cli.main(["diagnose", str(tmp_path / "log.txt")]) == 0
        first, second = capsys.readouterr().out.splitlines()[:2]
        assert "was compromised and runs hostile code" in first and second.startswith("Do: Do not import it")


@pytest.mark.parametrize(
    ("words", "release"),
    [
        ("pytorch-lightning 2.6.2 does not import", "2.6.2"),
        ("torch 2.6.3 and Lightning version 2.6.2", "2.6.2"),
        ("Lightning 2.6 with torch 2.6.3, CUDA 12.6.3", ""),
        ("lightning-utilities 2.6.3 beside lightning>=2.6.2", ""),
    ],
)
def test_compromised_release_is_reported_only_if_the_words_name_it(
    capsys: pytest.CaptureFixture[str], words: str, release: str
) -> None:
    cli.main(["diagnose", words])
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"Lightning {release} from PyPI was compromised") is bool(release)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("pl#21037", "rich-progress-bar, a bug of Lightning 1.8.0 to 2.5.2."),
        ("Lightning-AI/pytorch-lightning#21037", "rich-progress-bar, a bug of Lightning 1.8.0 to 2.5.2."),
        ("mid_epoch_resume", "mid-epoch-resume, a bug of Lightning 2.0.0 to 2.4.0."),
    ],
)
def test_number_or_name_is_certain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, asked: str, first: str
) -> None:
    monkeypatch.setattr(verdicts, "installed", lambda *_: [])
    assert cli.main(["diagnose", asked]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == first and "To be sure" not in shown and "Perhaps" not in shown


@pytest.mark.parametrize("command", ["show", "diagnose"])
def test_unknown_number_is_not_a_file(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert cli.main([command, "#99999"]) == 2
    assert "not the number of a known issue or pull request" in capsys.readouterr().err


def _sharing() -> list[tuple[Any, Any, str]]:
    """Return pairs of patches with the same symptom, or with one that is part of the other."""
    shown = [
        (patch, symptom, " ... ".join(known.pieces(symptom)))
        for patch in all_patches()
        for symptom in patch.impact.symptoms
    ]
    pairs = {}
    for one, symptom, text in shown:
        for other, _, longer in shown:
            if one.name < other.name and (text in longer or longer in text):
                pairs[one.name, other.name] = (one, other, symptom)
    return list(pairs.values())


@pytest.mark.parametrize(("one", "other", "symptom"), _sharing(), ids=lambda value: getattr(value, "name", ""))
def test_shared_symptom_is_uncertain_without_a_frame(
    one: Any, other: Any, symptom: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "log.txt").write_text(f"RuntimeError: {symptom}\n")
    cli.main(["diagnose", str(tmp_path / "log.txt"), "--json"])
    matches = json.loads(capsys.readouterr().out)["matches"]
    assert not [match for match in matches if match["name"] in (one.name, other.name) and match["certain"]]


@pytest.mark.parametrize(
    ("patch", "consequence", "says"),
    [(patch, one, says) for patch, one in known.consequences() for says in one.says],
    ids=lambda value: getattr(value, "name", value if isinstance(value, str) else ""),
)
def test_consequence_of_a_silent_bug_needs_evidence_in_the_log(patch: Any, consequence: Any, says: str) -> None:
    shown = {
        "batch-size-finder-tried-size": "Finished batch size finder, will continue with full run using batch size 64",
        "checkpoint-after-validation": "`ModelCheckpoint(monitor='v')` could not find the monitored key in the "
        + "returned metrics",
        "checkpoint-kept-on-resume": "Restored all states from the checkpoint at a/x.ckpt",
        "checkpoint-overwritten": "`Trainer.fit` stopped: `max_epochs=2` reached.",
        "checkpoint-written-once": '"/env/cloud_io.py", line 89, in _atomic_save',
        "checkpoint-permission-error": "trainer.test(ckpt_path='best')",
        "csv-logger-flush": "logs/lightning_logs/version_0/metrics.csv",
        "default-dtype-restored": "Trainer(precision='64-true')",
        "fit-resets-should-stop": "Checkpoint directory /home/me/logs/version_0/checkpoints exists and is not empty.",
        "interrupt-ends-all-ranks": "Detected KeyboardInterrupt, attempting graceful shutdown ...",
        "last-checkpoint-at-end": "`Trainer.fit` stopped: `max_epochs=2` reached.",
        "lr-finder-train-loader": "Learning rate set to 0.001",
        "remote-checkpoint-kept-on-resume": "Restored all states from the checkpoint at s3://a/x.ckpt",
        "resume-after-last-batch": "Restored all states from the checkpoint at a/x.ckpt",
        "swa-infinite-epochs": "`Trainer.fit` stopped: `max_epochs=0` reached.",
        "validation-after-short-epoch": "Your `IterableDataset` has `__len__` defined.",
        "warn-empty-loader-in-cycle": "Total length of `DataLoader` across ranks is zero.",
    }.get(patch.name, "")
    words = says.replace("...", shown.split()[-1] if "checkpoint at " in shown else "x")
    error = frames(SITE + ("pytorch/" + (consequence.shows.replace("\\", "") if not shown else "trainer.py")))
    error += f"RuntimeError: {words}\n"
    assert patch.name in names(f"{shown}\n{error}")
    assert not shown or patch.name not in names(error)
    if shown and "ckpt_path" not in shown and "/" not in shown[:5]:  # these are in the error message
        assert any(needle in shown.encode().translate(excerpt._SHAPE) for needle in excerpt.needles()), "in a large log"


_USERS = HEAD + '  File "/home/me/train.py", line 7, in <module>\n    {}\n'
_REFUSED = HEAD + "".join(
    f'  File "{path}", line 7, in {function}\n    g()\n'
    for path, function in (
        ("/home/me/cli.py", "<module>"),
        (LIGHTNING + "pytorch/cli.py", "_parse_ckpt_path"),
        ("/env/site-packages/jsonargparse/_core.py", "parse_object"),
    )
)


def _ended_by(cause: str, message: str) -> str:
    return frames("/env/site-packages/jsonargparse/_core.py") + f"{cause}\n{DURING}{message}"


@pytest.mark.parametrize(
    ("release", "log", "name"),
    [
        (
            "2.2.1",
            _USERS.format('f = torch.compile(backend="eager")(g)')
            + "TypeError: compile() missing 1 required positional argument: 'model'\n",
            "compile-as-decorator",
        ),
        (
            "2.5.1",
            frames("/home/me/train.py")
            + f'  File "{LIGHTNING}fabric/utilities/cloud_io.py", line 89, in _atomic_save\n    with fs.transaction:\n'
            + '  File "/usr/lib/python3.11/shutil.py", line 382, in copystat\n    lookup("chmod")(dst, mode)\n'
            + "PermissionError: [Errno 1] Operation not permitted: '/mnt/epoch=0-step=4.ckpt'\n",
            "checkpoint-written-once",
        ),
        (
            "2.1.1",
            frames("/home/me/train.py")
            + f'  File "{LIGHTNING}pytorch/callbacks/model_checkpoint.py", line 391, in _link_checkpoint\n'
            + "    os.symlink(filepath, linkpath)\n"
            + "OSError: [Errno 95] Operation not supported: 'a.ckpt' -> 'last.ckpt'\n",
            "last-checkpoint-without-links",
        ),
        (
            "2.6.6",
            _ended_by("NSKeyError: Subcommand 'test' does not accept option 'model.lr'", _REFUSED + "SystemExit: 2\n"),
            "cli-checkpoint-of-other-class",
        ),
        (
            "2.6.6",
            "Subcommand 'test' does not accept option 'model.lr'\nParsing of ckpt_path hyperparameters failed!\n",
            "cli-checkpoint-of-other-class",
        ),
        (
            "2.5.6",
            _ended_by("NSKeyError: Option '_class_path' is not accepted", _REFUSED + "SystemExit: 2\n"),
            "cli-checkpoint-of-subclass",
        ),
        (
            "2.5.6",
            "    Option '_class_path' is not accepted\nParsing of ckpt_path hyperparameters failed!\n",
            "cli-checkpoint-of-subclass",
        ),
    ],
)
def test_error_raised_at_another_place_is_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, release: str, log: str, name: str
) -> None:
    (tmp_path / "log.txt").write_text(log)
    assert cli.main(["diagnose", str(tmp_path / "log.txt"), "--json", "--requirement", f"lightning=={release}"]) == 0
    first = json.loads(capsys.readouterr().out)["matches"][0]
    assert (first["name"], first["kind"], first["cause"]) == (name, "found", True)


def test_other_missing_metric_is_no_consequence_of_a_skipped_validation() -> None:
    error = (
        "RuntimeError: Early stopping conditioned on metric `val_los` which is not available. Pass in or modify your "
    )
    error += "`EarlyStopping` callback to use any of the following: "
    for logged, is_named in (("``", True), ("`train_loss`", True), ("`train_loss`, `val_loss`", False)):
        log = f"Learning rate set to 0.001\n{frames(SITE + 'pytorch/callbacks/early_stopping.py')}{error}{logged}\n"
        assert ("lr-finder-train-loader" in names(log)) is is_named


def test_last_error_outranks_earlier_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = (
        frames("/home/me/train.py", SITE + "pytorch/trainer/trainer.py", "/home/me/net.py") + "ValueError: of my own\n"
    )
    document = diagnosed(capsys, tmp_path, f"Learning rate set to 0.001\nretrying\n{TRACEBACK}Epoch 1\n{own}")
    assert (
        document["verdict"] == "I don't know this error: `ValueError: of my own`."
        or not document["matches"][0]["cause"]
    )
    document = diagnosed(capsys, tmp_path, f"{own}Epoch 1\n{TRACEBACK}")
    assert document["matches"][0]["name"] == DEVICE and document["matches"][0]["cause"]


def test_first_failed_rank_is_the_cause(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one = "".join(f"[rank1]: {line}\n" for line in TRACEBACK.splitlines())
    peer = frames("/env/torch/x.py") + "torch.distributed.DistBackendError: NCCL error: connection closed by peer\n"
    zero = "".join(f"[rank0]: {line}\n" for line in peer.splitlines())
    for text in (one + zero, zero + one):
        document = diagnosed(capsys, tmp_path, text)
        assert document["matches"][0]["name"] == DEVICE and document["matches"][0]["cause"], document["verdict"]


def test_each_rank_twice_means_other_tasks_than_devices(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("\n".join(line for line in JOINS for _ in range(2)))
    cli.main(["diagnose", str(tmp_path / "log.txt")])
    shown = capsys.readouterr().out
    assert shown.startswith("Each rank runs twice: SLURM started another number of tasks than Trainer(devices=...)")


@pytest.mark.parametrize(
    "words",
    [
        "precision/recall of my model is bad",
        "val/loss and train/loss are not in the same plot",
        "a/b testing of models",
    ],
)
def test_words_with_a_slash_are_not_a_file_name(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert cli.main(["diagnose", words]) in (0, 1)
    assert "cannot be read" not in capsys.readouterr().err


def test_traceback_as_an_argument_is_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", TRACEBACK, "--requirement", "lightning==2.2.5", "--json"]) == 0
    (match,) = json.loads(capsys.readouterr().out)["matches"]
    assert (match["name"], match["kind"]) == (DEVICE, "found")


@pytest.mark.parametrize("number", ["21037", "#21030", "18060", "21244", "17389", "issue 19813", "12205"])
def test_show_and_diagnose_know_each_number(capsys: pytest.CaptureFixture[str], number: str) -> None:
    for command in ("show", "diagnose"):
        assert cli.main([command, number]) == 0, command
        assert "Traceback" not in capsys.readouterr().out


NUMBERED = ("lightning_patches/known/coverage.txt", "lightning_patches/known/duplicates.txt", "upstream/reports.txt")


@pytest.mark.parametrize("name", NUMBERED)
def test_show_and_diagnose_know_each_number_of_the_lists(capsys: pytest.CaptureFixture[str], name: str) -> None:
    numbers = sorted(set(re.findall(r"(?<![\d.])\d{5}(?![\d.])", (ROOT / name).read_text())))
    assert numbers
    unknown = []
    for number in numbers:
        for command in (["show", "--no-diff", "--json"], ["diagnose", "--json"]):
            try:
                is_known = cli.main([*command, number]) == 0
            except SystemExit:
                is_known = False
            document = json.loads(capsys.readouterr().out or "{}") if is_known else {}
            if not (document.get("patches") or document.get("others") or document.get("verdict")):
                unknown.append((command[0], number))
    assert unknown == []


def test_show_knows_each_number_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    table = (ROOT / "README.md").read_text().partition("## Is it your bug?")[2].partition("\n## ")[0]
    numbers = re.findall(r"^\|.*\((?:PR )?(\d{3,5})\) \|", table, re.M)
    assert len(numbers) == len(re.findall(r"^\| \[", table, re.M)) > 9
    unknown = [number for number in numbers if not lookup.find(number)]
    assert unknown == []
    assert cli.main(["show", "20577"]) == 0
    assert "LIGHTNING_PATCHES_HANG_TIMEOUT" in capsys.readouterr().out


def test_every_number_of_coverage_and_every_name_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    for key in lookup.known():
        assert lookup.find(key), key
    names_of = {one.name for one in (*all_patches(), *UNPATCHED, *UNCOUNTED)}
    assert {name for _, name in lookup.duplicates()} <= names_of
    assert len(names_of) == len([*all_patches(), *UNPATCHED, *UNCOUNTED])
