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
from typing import Any, NamedTuple

import pytest

from lightning_patches import cli
from lightning_patches.cli.diagnose import candidates, excerpt, known, program, read, verdicts
from lightning_patches.cli.diagnose import frames as frames_index
from lightning_patches.engine import fingerprints
from lightning_patches.known import lookup
from lightning_patches.known.frequent import frequent
from lightning_patches.known.unpatched import UNPATCHED
from lightning_patches.patches import all_patches
from tests.support.variants import ROOT
from tests.unit.commands import Diagnose

DEVICE = "logged-metrics-device"
MESSAGE = "RuntimeError: No backend type associated with device type cpu"
HEAD = "Traceback (most recent call last):\n"
LIGHTNING = "/opt/env/lib/python3.11/site-packages/lightning/"
TRACEBACK = f"""{HEAD}  File "{LIGHTNING}pytorch/trainer/connectors/logger_connector/result.py", line 241
    value = self.meta.sync(self.value)
{MESSAGE}
"""
APPLIED = "lightning_patches: lightning 2.2.5: 80 fixes ('lightning-patches status' lists them)\n"
COMMAND = (sys.executable, "-m", "lightning_patches", "diagnose")


def names(text: str) -> list[str]:
    return [match.record.name for match in found(text)]


def found(text: str) -> list[candidates.Candidate]:
    return candidates.find(read.from_text("log.txt", text))


def frames(*files: str) -> str:
    return HEAD + "".join(f'  File "{file}", line 7, in f\n    g()\n' for file in files)


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
        assert patch.name in names(f"{HEAD}{own_frame(patch)}{symptom}\n"), symptom


@pytest.mark.parametrize("patch", all_patches(), ids=lambda patch: patch.name)
def test_first_line_of_the_error_finds_the_patch(patch: Any) -> None:
    """The line alone is enough if it is unique; otherwise a frame in the code with the bug is needed."""
    as_others = ("checkpoint-exists-on-rank-zero", "compiled-names", "rich-progress-bar-resumed")
    as_others += (
        "best-path-of-rank-zero",
        "hyperparameters-made-in-method",
        "rich-empty-sanity-check",
    )  # their errors are not unique
    as_others += ("mlflow-temporary-directory", "cli-config-without-log-dir", "predict-batch-sampler-constructor")
    # A KeyError of a parameter's name, and an error of mixed devices, may come from any program.
    nameless = ("compiled-sharded-checkpoint", "torchscript-check-inputs")
    assert patch.impact.error or patch.group != "crash" or patch.name in nameless
    if patch.impact.error and patch.name not in as_others:
        source = "    initial_device = next(model.parameters()).device\n" * (patch.impact.error == "StopIteration")
        shown = patch.impact.error.replace("...", "some")
        assert patch.name in names(f"{HEAD}{own_frame(patch)}{source}{shown}\n")


@pytest.mark.parametrize("patch", all_patches(), ids=lambda patch: patch.name)
def test_enabled_patch_is_not_suggested(diagnose: Diagnose, patch: Any) -> None:
    """Covers the answers about all patches."""
    name = patch.name.replace("-", "_")
    own = f'  File "/env/lightning_patches/patches/some/{name}.py", line 7, in f\n    original()\n'
    for symptom in patch.impact.symptoms:
        document = diagnose.log(f"{HEAD}{own_frame(patch)}{own}{symptom}\n")
        shown = [document["closing"], *(one["advice"] for one in document["matches"] if one["name"] == patch.name)]
        assert not any("run train.py" in one or "at the top of the script, or" in one for one in shown), (
            symptom,
            shown,
        )


@pytest.mark.parametrize(
    ("symptom", "text", "is_there"),
    [
        ("at least ... cuda:1 and cuda:0", "found at least two devices, cuda:3 and cuda:0!", True),
        ("at least ... cuda:1 and cuda:0", "found at least two devices", False),
        ("a ... b", "a" + "x" * 400 + " b", False),
        ("KeyError: 0", "a KeyError: 0, or so", True),
        ("KeyError: 0", "KeyError: 0.5", False),
        ("`monitor`", "its 'monitor'", True),
        (MESSAGE, f"{MESSAGE}core", False),
    ],
)
def test_symptom_matches_with_gaps_quotes_and_device_numbers(symptom: str, text: str, is_there: bool) -> None:
    assert (known.place(known.pieces(symptom), known.normalised(text)) >= 0) is is_there


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
def test_shared_symptom_is_uncertain_without_a_frame(diagnose: Diagnose, one: Any, other: Any, symptom: str) -> None:
    matches = diagnose.json(diagnose.write("log.txt", f"RuntimeError: {symptom}\n"))["matches"]
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
    error = frames(LIGHTNING + ("pytorch/" + (consequence.shows.replace("\\", "") if not shown else "trainer.py")))
    error += f"RuntimeError: {words}\n"
    assert patch.name in names(f"{shown}\n{error}")
    assert not shown or patch.name not in names(error)
    if shown and "ckpt_path" not in shown and "/" not in shown[:5]:  # these are in the error message
        assert any(needle in shown.encode().translate(excerpt._SHAPE) for needle in excerpt.needles()), "in a large log"


def test_other_missing_metric_is_no_consequence_of_a_skipped_validation() -> None:
    error = (
        "RuntimeError: Early stopping conditioned on metric `val_los` which is not available. Pass in or modify your "
        "`EarlyStopping` callback to use any of the following: "
    )
    log = f"Learning rate set to 0.001\n{frames(LIGHTNING + 'pytorch/callbacks/early_stopping.py')}{error}"
    for logged, is_named in (("``", True), ("`train_loss`", True), ("`train_loss`, `val_loss`", False)):
        assert ("lr-finder-train-loader" in names(f"{log}{logged}\n")) is is_named


CPU = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n"
GENERATOR = "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'\n"
NO_STACK = "RuntimeError: stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor\n"
IN_WORKER = "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal "
REFUSED = (
    frames("/home/me/train.py", LIGHTNING + "pytorch/core/saving.py", LIGHTNING + "fabric/utilities/cloud_io.py")
    + "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded\n"
    + "\tWeightsUnpickler error: Unsupported global: GLOBAL __main__.Config was not an allowed global by default\n"
)
TRAINED = frames(LIGHTNING + "pytorch/trainer/trainer.py", "/home/me/net.py")
MASKING = "RuntimeError: Please call `iter(combined_loader)` first.\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
TEARDOWN = frames("/home/me/train.py", LIGHTNING + "pytorch/utilities/combined_loader.py") + MASKING
MASKED = frames(LIGHTNING + "pytorch/loops/fit_loop.py", "/env/torch/utils/_device.py") + GENERATOR + DURING + TEARDOWN
OWN = frames(LIGHTNING + "pytorch/loops/fit_loop.py", "/home/me/data.py") + "FileNotFoundError: no such images\n"
PEER = frames("/env/torch/x.py") + "torch.distributed.DistBackendError: NCCL error: connection closed by peer\n"
CLI_REFUSED = (
    HEAD
    + "".join(
        f'  File "{path}", line 7, in {function}\n    g()\n'
        for path, function in (
            ("/home/me/cli.py", "<module>"),
            (LIGHTNING + "pytorch/cli.py", "_parse_ckpt_path"),
            ("/env/site-packages/jsonargparse/_core.py", "parse_object"),
        )
    )
    + "SystemExit: 2\n"
)
PARSED = frames("/env/site-packages/jsonargparse/_core.py")


def prefixed(prefix: str, text: str) -> str:
    return "".join(prefix + line for line in text.splitlines(keepends=True))


class Case(NamedTuple):
    """A log and its answer.

    Args:
        log: the log.
        first: kind and name of the first match; ``-`` without a match. ``found`` is the cause, and ``earlier`` is not.
        says: texts of the verdict or of the advice.
        release: the release of the program.
    """

    log: str
    first: str
    says: tuple[str, ...] = ()
    release: str = "lightning==2.2.5"


UNKNOWN = ("I don't know this error: `",)
CASES = {
    "watchdog": Case("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)",
     "possible prepare-data-without-deadline", ("Perhaps ",)),
    "line of a common error": Case(MESSAGE, f"possible {DEVICE}", ("Perhaps ",)),
    "unknown release": Case(TRACEBACK, f"possible {DEVICE}", release="lightning==2.7.0"),
    "a warning": Case("Learning rate set to 0.00025\n", "possible lr-finder-applies-lr"),
    "tensors, no frame": Case(frames(LIGHTNING + "pytorch/strategies/ddp.py", "/home/me/net.py") + CPU, "-", UNKNOWN),
    "generator, no frame": Case(frames(LIGHTNING + "pytorch/loops/fit_loop.py", "/env/torch/sampler.py") + GENERATOR,
     "-", UNKNOWN),
    "pop, no frame": Case(f"{TRAINED}IndexError: pop from empty list\n", "-", UNKNOWN),
    "key, no frame": Case(f"{TRAINED}KeyError: 0\n", "-", UNKNOWN),
    "sampler, no frame": Case(f"{TRAINED}AttributeError: 'Net' object has no attribute 'sampler'\n", "-", UNKNOWN),
    "pop, a line": Case("IndexError: pop from empty list\n", "-", UNKNOWN),
    "key, a line": Case("KeyError: 0\n", "-", UNKNOWN),
    "key, its frame": Case(frames("/x/lightning/pytorch/callbacks/finetuning.py") + "KeyError: 0\n",
     "found finetuning-with-lr-finder"),
    "key, its frame of pytorch_lightning": Case(frames("/x/pytorch_lightning/callbacks/finetuning.py") +
     "KeyError: 0\n", "found finetuning-with-lr-finder", release="pytorch-lightning==2.2.5"),
    "another key": Case(frames("/x/lightning/pytorch/callbacks/finetuning.py") + "KeyError: 01\n", "-", UNKNOWN),
    "tensors elsewhere": Case(frames("/home/me/train.py") + CPU, "-"),
    "generator elsewhere": Case(frames("/home/me/train.py", "/env/torch/utils/data/sampler.py") + GENERATOR, "-"),
    "web view": Case(frames("/srv/app/views.py") + "IndexError: pop from empty list\n", "-"),
    "transformers": Case(frames("/home/me/train.py", "/env/transformers/trainer.py") + CPU, "-"),
    "pkg_resources": Case(frames("/home/me/a.py", "/env/google/cloud/_helpers.py") +
     "ModuleNotFoundError: No module named 'pkg_resources'\n", "-"),
    "torch.load": Case(frames("/home/me/a.py", "/env/torch/serialization.py") + REFUSED.partition("g()\n_")[2], "-"),
    "collate elsewhere": Case(frames("/home/me/loop.py", "/env/torch/utils/data/dataloader.py") + IN_WORKER +
     frames("/home/me/collate.py") + NO_STACK, "-"),
    "error of a worker": Case(frames("/home/me/train.py", LIGHTNING + "pytorch/utilities/data.py",
     "/env/torch/dataloader.py") + IN_WORKER + frames("/env/torch/collate.py") + NO_STACK, "found loader-sampler-kept"),
    "masked error": Case(MASKED, "found init-module-data", ("Put `import lightning_patches` at the top of",)),
    "masked error of a rank": Case(prefixed("[rank1]: ", MASKED), "found init-module-data"),
    "masked error of the user": Case(OWN + DURING + TEARDOWN, "follows dataloader-error-unmasked",
     ("I don't know the first error (the later ones are its consequences): `FileNotFoundError: no such images`.",
     "Look at /home/me/data.py, line 7, the last line of your code in the traceback.")),
    "many lines of a symptom": Case(
     "UserWarning: It looks like Weights only load failed, as Watchdog caught collective operation timeout\n" * 20_000 +
     TRACEBACK, f"found {DEVICE}"),
    "an error before the user's error": Case(f"{TRACEBACK}Epoch 1\n{OWN}", f"earlier {DEVICE}", UNKNOWN),
    "an error after the user's error": Case(f"{OWN}Epoch 1\n{TRACEBACK}", f"found {DEVICE}"),
    "the first rank fails last": Case(prefixed("[rank0]: ", PEER) + prefixed("[rank1]: ", TRACEBACK),
     f"found {DEVICE}"),
    "the first rank fails first": Case(prefixed("[rank1]: ", TRACEBACK) + prefixed("[rank0]: ", PEER),
     f"found {DEVICE}"),
    "a refusal on purpose": Case(TRAINED.replace("/home/me/net.py", LIGHTNING +
     "pytorch/core/module.py").replace(" in f", " in log") +
     "ValueError: `self.log(loss, {'a': 0, 'b': 1})` was called, but `dict` values cannot be logged\n",
     "found log-of-a-dict", ("No release of Lightning has this: ",)),
    "compiled decorator": Case(frames("/home/me/train.py").replace("g()", 'f = torch.compile(backend="eager")(g)') +
     "TypeError: compile() missing 1 required positional argument: 'model'\n", "found compile-as-decorator",
     release="lightning==2.2.1"),
    "chmod": Case(frames("/home/me/train.py") +
     f'  File "{LIGHTNING}fabric/utilities/cloud_io.py", line 89, in _atomic_save\n    with fs.transaction:\n' +
     '  File "/usr/lib/python3.11/shutil.py", line 382, in copystat\n    lookup("chmod")(dst, mode)\n' +
     "PermissionError: [Errno 1] Operation not permitted: '/mnt/epoch=0-step=4.ckpt'\n",
     "found checkpoint-written-once", release="lightning==2.5.1"),
    "links": Case(frames("/home/me/train.py") +
     f'  File "{LIGHTNING}pytorch/callbacks/model_checkpoint.py", line 391, in _link_checkpoint\n' +
     "    os.symlink(filepath, linkpath)\n" + "OSError: [Errno 95] Operation not supported: 'a.ckpt' -> 'last.ckpt'\n",
     "found last-checkpoint-without-links", release="lightning==2.1.1"),
    "option": Case(f"{PARSED}NSKeyError: Subcommand 'test' does not accept option 'model.lr'\n{DURING}{CLI_REFUSED}",
     "found cli-checkpoint-of-other-class", release="lightning==2.6.6"),
    "option, lines": Case(
     "Subcommand 'test' does not accept option 'model.lr'\nParsing of ckpt_path hyperparameters failed!\n",
     "found cli-checkpoint-of-other-class", release="lightning==2.6.6"),
    "class path": Case(f"{PARSED}NSKeyError: Option '_class_path' is not accepted\n{DURING}{CLI_REFUSED}",
     "found cli-checkpoint-of-subclass", release="lightning==2.5.6"),
    "class path, lines": Case(
     "    Option '_class_path' is not accepted\nParsing of ckpt_path hyperparameters failed!\n",
     "found cli-checkpoint-of-subclass", release="lightning==2.5.6"),
    "compromised release": Case("scanner: GHSA-w37p-236h-pfx3 in lightning\n", "found compromised-release",
     ("Do not import it",), "lightning==2.6.3"),
    "patched": Case(APPLIED + TRACEBACK, f"found {DEVICE}",
     (f"`lightning-patches status {DEVICE}`, run in its environment, shows why",)),
    "no fixes": Case(APPLIED.replace("80 fixes", "no fixes") + TRACEBACK, f"found {DEVICE}",
     ("import lightning_patches",)),
    "opt-in patch": Case(frames("/home/me/train.py", LIGHTNING + "fabric/loggers/csv_logs.py").replace("in f",
     "in <module>", 1) + "ValueError: dict contains fields not in fieldnames: 'b'\n", "found csv-logger-own-file",
     ("`lightning-patches run --patches default,csv-logger-own-file train.py`, or upgrade to Lightning 2.2.1.",),
     "lightning==2.2.0"),
    "torchrun": Case(TRACEBACK.replace("last):\n", 'last):\n  File "/home/me/train.py", line 9, in <module>\n') +
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n", f"found {DEVICE}",
     ("at the top of train.py",)),
    "1.5": Case(frames("train.py", "/env/site-packages/pytorch_lightning/utilities/cli.py").replace(" in f",
     " in <module>") +
     "ImportError: cannot import name '_ActionSubCommands' from 'jsonargparse.actions' (/env/jsonargparse/a.py)\n",
     "found command-line-of-1-5", ("Known bug command-line-of-1-5", "Move to Lightning 1.6.5"),
     "pytorch-lightning==1.5.10"),
    "pip skips 1.6": Case(
     "WARNING: Ignoring version 1.6.5 of pytorch-lightning since it has invalid metadata:\n    torch (>=1.8.*)\n",
     "found metadata-of-1x", ('use pip install "pip<24.1" first',), "pytorch-lightning==1.6.5"),
    "pip refuses 1.6": Case(
     "ERROR: Requested pytorch-lightning==1.6.5 from file:///w/pytorch_lightning-1.6.5-py3-none-any.whl has invalid "
     "metadata: .* suffix can only be used with `==` or `!=` operators\n    torch (>=1.8.*)\n", "found metadata-of-1x",
     ('use pip install "pip<24.1" first',), "pytorch-lightning==1.6.5"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_log_gets_its_answer(diagnose: Diagnose, name: str) -> None:
    case = CASES[name]
    document = diagnose.log(case.log, "--requirement", case.release)
    first, *others = document["matches"] or [{"kind": "", "name": "-", "cause": False}]
    kind = "earlier" if first["kind"] == "found" and not first["cause"] else first["kind"]
    assert f"{kind} {first['name']}".strip() == case.first, document["verdict"]
    assert not any(match["cause"] for match in others)
    told = f"{document['verdict']}\n{document['do']}"
    assert all(text in told for text in case.says), told


@pytest.mark.parametrize(
    ("outer", "do"),
    [
        ('  File "/home/me/finetune.py", line 9, in <module>\n', "`lightning-patches run finetune.py`"),
        ('  File "/opt/env/lib/python3.11/site-packages/fire/core.py", line 9, in f\n',
         "Put `import lightning_patches`"),
        ('  File "<string>", line 1, in <module>\n', "Put `import lightning_patches` at the top of the script"),
        ('  File "<frozen runpy>", line 198, in _run_module_as_main\n'
         '  File "/env/lib/python3.11/site-packages/mypkg/train.py", line 9, in <module>\n',
         "`lightning-patches run -m mypkg.train`"),
        ('  File "<frozen runpy>", line 198, in _run_module_as_main\n'
         '  File "/home/me/mypkg/__main__.py", line 9, in <module>\n', "`lightning-patches run -m mypkg`"),
        ('  File "<frozen runpy>", line 198, in _run_module_as_main\n'
         '  File "/home/me/pkg/a.py", line 9, in <module>\n', "Put `lightning-patches run` instead of `python`"),
        ('  File "/env/bin/mytool", line 8, in <module>\n', "`lightning-patches run -- mytool`"),
        ('  File "/tmp/ipykernel_71/123.py", line 8, in <module>\n', "into the first cell"),
        ("  Cell In[3], line 5\n", "into the first cell"),
    ],
)  # fmt: skip
def test_advice_fits_the_launcher(diagnose: Diagnose, outer: str, do: str) -> None:
    assert do in diagnose.log(TRACEBACK.replace("last):\n", f"last):\n{outer}"))["do"]


def test_local_script_is_named_by_its_path(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    script = diagnose.write("my runs/fine tune.py")
    monkeypatch.chdir(diagnose.directory)
    text = TRACEBACK.replace("last):\n", f'last):\n  File "{script}", line 9, in <module>\n')
    assert "`lightning-patches run 'my runs/fine tune.py'`" in diagnose.log(text)["closing"]


@pytest.mark.parametrize("release", ["2.0.9", "2.2.5", "2.6.0", "2.6.6"])
@pytest.mark.parametrize(
    ("text", "directory"),
    [
        (f"Restoring states from the checkpoint path at /data/me/runs/last.ckpt\n{REFUSED}", "/data/me/runs"),
        (
            "lightning_patches: '/data/me/runs/last.ckpt' holds objects that torch does not load by default: "
            f"__main__.Config.\n{REFUSED}",
            "/data/me/runs",
        ),
        (REFUSED.replace("    g()", '    Net.load_from_checkpoint("runs/a b.ckpt")', 1), "runs"),
        (REFUSED, "DIRECTORY OF THE CHECKPOINT"),
    ],
    ids=["resumed", "our hint", "source", "unnamed"],
)
def test_checkpoint_advice_names_its_directory(diagnose: Diagnose, text: str, directory: str, release: str) -> None:
    call = f"`lightning_patches.trust_checkpoints({directory!r})` below `import lightning_patches`"
    our_frame = '  File "/env/lightning_patches/patches/own_checkpoints.py", line 7, in _load\n    original()\n'
    for log, is_patched in (
        (text, False),
        (APPLIED + text, True),
        (text.replace("_pickle.Unpick", f"{our_frame}_pickle.Unpick"), True),
    ):
        closing = diagnose.log(log, "--requirement", f"lightning=={release}")["closing"]
        assert call in closing
        assert not (is_patched and "this fixes the error if the same run wrote the checkpoint" in closing)


def test_description_of_the_match_is_complete(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    (match,) = diagnose.log(TRACEBACK)["matches"]
    assert (match["name"], match["line"], match["text"]) == (DEVICE, 4, MESSAGE)
    assert match["verdicts"] == [{"distribution": "lightning", "version": "2.2.5", "verdict": "pending", "reason": ""}]
    assert "import lightning_patches" in match["advice"] and "2.4.0" in match["advice"]
    assert diagnose(diagnose.write("log.txt", TRACEBACK), "--requirement", "lightning==2.2.5") == 0
    assert diagnose.out.startswith(f"Known bug {DEVICE} of lightning 2.2.5.\nDo: ")
    assert f"Line 4: {MESSAGE}" in diagnose.out
    (match,) = diagnose.log(TRACEBACK, "--requirement", "lightning==2.6.6")["matches"]
    assert (diagnose.status, match["ruled_out"]) == (1, True)
    assert "lightning 2.6.6 does not have this bug" in match["advice"]
    monkeypatch.setenv("LIGHTNING_PATCHES", f"-{DEVICE}")
    (match,) = diagnose.log(TRACEBACK)["matches"]
    assert match["verdicts"][0]["verdict"] == "disabled"
    assert "LIGHTNING_PATCHES leaves it out" in match["advice"]


def test_line_to_paste_has_nothing_of_the_log(diagnose: Diagnose) -> None:
    secret = "AKIA-SECRET-KEY"
    for text in (
        TRACEBACK.replace(MESSAGE, f"{MESSAGE} {secret}"),
        HEAD + f'  File "/home/{secret}/a.py", line 1, in f\n{secret}Error: {secret}\n',
        MESSAGE + f" {secret}",
        f"lightning_patches: rank 1 ended with an error: ValueError: {secret}; rank 0 in barrier 2.\n",
        frames(f"/home/{secret}/a.py", LIGHTNING + "pytorch/callbacks/finetuning.py") + "KeyError: 0\n",
    ):
        assert secret not in diagnose.log(text)["to_paste"], text


def test_control_characters_of_a_log_are_removed(diagnose: Diagnose) -> None:
    evil = "\x07\u202e\x9b31m"
    path = diagnose.write(f"a{evil}\nfound: all is well.log", f"{evil} {MESSAGE} \x1b]0;title\n")
    other = diagnose.write("b.log", "Epoch 0\n")
    assert diagnose(path, other, "--requirement", "lightning==2.2.5") == 0
    assert DEVICE in diagnose.out and not set("\x07\u202e\x9b\x1b") & set(diagnose.out)
    assert not any(line.startswith("found: all is well") for line in diagnose.out.splitlines())
    assert diagnose(diagnose.directory / f"none{evil}.log") == 2
    assert not set("\x07\u202e\x9b") & set(diagnose.err)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 900, b"Epoch 0: 100%\nbetter than ever, exit 0\n" * 90])
def test_log_without_an_error_gets_suggestions(diagnose: Diagnose, content: bytes) -> None:
    assert diagnose(diagnose.write("log.txt", content)) == 1
    assert diagnose.out.startswith("The log shows no error.\nDo: ") and "describe it" in diagnose.out


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 3000), (3000, 0), (3000, 3000)])
def test_unknown_error_in_a_long_log_is_shown(diagnose: Diagnose, before: int, after: int) -> None:
    text = "a line of a log\n" * before + OWN + "another line\n" * after + "end\n" * 200
    assert diagnose(diagnose.write("log.txt", text)) == 1
    assert diagnose.out.startswith("I don't know this error: `FileNotFoundError")


def test_large_log_is_answered(diagnose: Diagnose) -> None:
    """Progress bars and rank prefixes, several files, one of them compressed."""
    bar = b"\r".join(b"Epoch 3:  %d%%|###  | %d/100 [00:10<00:20, 3.1it/s, train_loss=0.5]" % (i, i) for i in range(99))
    line = bar + b"\n2026-01-02 03:04:05,678 INFO [rank0]: worker saves weights, learning rate 0.1, device cuda:0\n"
    noise = line * (24 * 1024 * 1024 // len(line))
    logs = [
        diagnose.write("big.log", noise + TRACEBACK.encode() + line * 1000),
        diagnose.write("big.log.gz", gzip.compress(noise + TEARDOWN.encode(), 1)),
    ]
    matches = {match["name"]: match for match in diagnose.json(*logs, "--requirement", "lightning==2.2.5")["matches"]}
    assert matches[DEVICE]["line"] == noise.count(b"\n") + 4 and matches[DEVICE]["cause"]
    assert matches["dataloader-error-unmasked"]["file"].endswith(".gz")


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
def test_error_at_a_block_boundary_is_found(monkeypatch, tmp_path, kind, ends):
    """The error is at the edge of the second block, in logs with equal and with different lines."""
    monkeypatch.setattr(excerpt, "BLOCK", 100_000)
    monkeypatch.setattr(excerpt, "MAX_BYTES", 240_000)
    monkeypatch.setattr(excerpt, "END", 10_000)
    error = ("\n" + TRACEBACK).encode().replace(b"\n", ends)
    noise = b"".join(map(LOG[kind], range(25_000)))
    assert len(noise) > 250_000
    for before in (*range(200_000 - len(error), 200_000 + 1000, 397), 0):
        log = noise[:before] + error + noise[before:]
        (tmp_path / "log.gz").write_bytes(gzip.compress(log, 1))
        (one,) = read.logs([str(tmp_path / "log.gz")])
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
        ("zebra crossing", False),
    ],
)
def test_words_for_a_hang_are_answered_with_the_watch(diagnose: Diagnose, words: str, is_hang: bool) -> None:
    diagnose(words)
    assert ("\nDo: If several ranks hang: `LIGHTNING_PATCHES_HANG_TIMEOUT=300 lightning-pa" in diagnose.out) is is_hang
    assert ("`lightning-patches doctor`, run in the same place" in diagnose.out) is is_hang
    assert "2>&1" not in diagnose.out and ("frozen-batch-norm" in diagnose.out) is ("frozen" in words)
    assert diagnose.json(words)["closing"].startswith("If several ranks hang:") is is_hang


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "WORDS in quotes"),
        (["stuck"], 'Describe the problem in several words: `lightning-patches diagnose "it is stuck"`'),
        (["train.log"], "train.log cannot be read"),
        (["#99999"], "not the number of a known issue or pull request"),
    ],
)
def test_missing_or_wrong_input_is_explained(diagnose: Diagnose, arguments: list[str], words: str) -> None:
    assert diagnose(*arguments) == 2
    assert words in diagnose.err and ("several words" in diagnose.err) is ("several words" in words)


def test_words_get_the_release_that_they_name(diagnose: Diagnose) -> None:
    words = "the first epoch has fewer steps after LearningRateFinder"
    assert diagnose(f"I use Lightning 2.5.1: {words}") == 0
    assert diagnose.out.startswith("Perhaps lr-finder-train-loader of lightning 2.5.1.\n")
    assert diagnose(f"I use Lightning 2.5.6: {words}") == 1
    assert "Ruled out, since the release does not have it: lr-finder-train-loader" in diagnose.out


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("pl#21037", "rich-progress-bar, a bug of Lightning 1.8.0 to 2.5.2."),
        ("Lightning-AI/pytorch-lightning#21037", "rich-progress-bar, a bug of Lightning 1.8.0 to 2.5.2."),
        ("mid_epoch_resume", "mid-epoch-resume, a bug of Lightning 2.0.0 to 2.4.0."),
    ],
)
def test_number_or_name_is_certain(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch, asked: str, first: str) -> None:
    monkeypatch.setattr(verdicts, "installed", lambda *_: [])
    assert diagnose(asked) == 0
    assert diagnose.out.splitlines()[0] == first and not any(word in diagnose.out for word in ("To be sure", "Perhaps"))


def test_traceback_as_an_argument_is_parsed(diagnose: Diagnose) -> None:
    (match,) = diagnose.json(TRACEBACK, "--requirement", "lightning==2.2.5")["matches"]
    assert (match["name"], match["kind"]) == (DEVICE, "found")


def test_script_without_findings_is_not_a_log(diagnose: Diagnose) -> None:
    script = diagnose.write("train.py", "from lightning.pytorch import Trainer\n\nTrainer(max_epochs=1)\n")
    assert diagnose(script) == 1
    first, second = diagnose.out.splitlines()[:2]
    assert first.endswith("train.py uses no name that Lightning 2.x has removed.") and "diagnose -- python" in second


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("line", "status", "words", "not_words"),
    [
        ("kill -9 $$", 137, ["(SIGKILL).", "SIGKILL ended the program",
         "Do: Often the cause is the out-of-memory killer"], ["describe it"]),
        ("kill -11 $$", 139, ["(SIGSEGV).", "SIGSEGV ended the program"], ["out-of-memory", "describe it"]),
        ("exit 3", 3, ["ended with status 3.", "its standard error has no error"], ["SIG", "describe it"]),
        ("exit 200", 200, ["ended with status 200."], ["(SIG"]),
        ("true", 0, ["describe it"], ["ended with status", "traceback"]),
    ],
)  # fmt: skip
def test_end_of_a_command_without_an_error_is_explained(line, status, words, not_words):
    done = run(*COMMAND, "--", "sh", "-c", line)
    assert done.returncode == status
    assert all(word in done.stdout for word in words), done.stdout
    assert not any(word in done.stdout for word in ["2>&1", *not_words]), done.stdout


def test_json_is_all_that_standard_output_has() -> None:
    command = [*COMMAND, "--json", "--", "sh", "-c", "echo own; echo err >&2"]
    done = run(*command)
    assert json.loads(done.stdout)["matches"] == [] and sorted(done.stderr.split()) == ["err", "own"]
    assert json.loads(run("sh", "-c", '"$@" 2>&-', "sh", *command).stdout)["matches"] == []


def test_program_is_run_and_its_end_is_explained() -> None:
    code = f"import sys; print('its own'); sys.stderr.write({TRACEBACK!r}); sys.exit(7)"
    done = run(*COMMAND, "--requirement", "lightning==2.2.5", "--", sys.executable, "-c", code, "--json")
    assert (done.returncode, done.stderr) == (7, TRACEBACK)
    assert done.stdout.startswith("its own\n") and "ended with status 7" in done.stdout
    assert f"Known bug {DEVICE}" in done.stdout


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


def test_unknown_old_release_is_not_excluded(diagnose: Diagnose) -> None:
    """No bug is found either, because the release is unknown."""
    site = diagnose.write("site/pytorch_lightning/utilities/__init__.py").parents[2]
    diagnose.write("site/pytorch_lightning/__init__.py")
    metadata = "Metadata-Version: 2.1\nName: pytorch-lightning\nVersion: 1.7.7\n"
    diagnose.write("site/pytorch_lightning-1.7.7.dist-info/METADATA", metadata)
    log = diagnose.write("train.log", TRACEBACK.replace("lightning/pytorch/", "pytorch_lightning/"))
    variables = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    command = [*COMMAND, "--json", str(log)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    (match,) = json.loads(done.stdout)["matches"]
    assert (match["kind"], match["ruled_out"]) == ("possible", False), match
    assert "pytorch-lightning 1.7.7 was not checked for this bug" in match["advice"]
    assert "does not have this bug" not in done.stdout


def test_diagnose_reads_standard_input(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    for data, status in ((MESSAGE.encode() + b"\xff\xfe", 0), (b"nothing", 1)):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert diagnose("-", "--requirement", "lightning==2.2.5") == status
    assert "I know no bug that fits this description." in diagnose.out


JOINS = [f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/2" for rank in range(2)]
REGISTERED = "distributed_backend=gloo\nAll distributed processes registered. Starting with 2 processes"
INTERRUPTED = HEAD + '  File "train.py", line 6, in <module>\n    time.sleep(9)\nKeyboardInterrupt\n'
CANCELLED = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***"
WORDY = "UserWarning: pkg_resources is deprecated\n" * 30


def started(diagnose: Diagnose, *logs: str) -> tuple[Any, str]:
    files = [diagnose.write(f"{number}.log", log) for number, log in enumerate(logs)]
    document = diagnose.json(*files, "--requirement", "lightning==2.2.5")
    assert (diagnose.status, document["matches"]) == (1, []) or document["start"] is None
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
def test_log_that_ends_at_the_rendezvous_is_a_start_up_hang(diagnose, logs, ranks, words):
    start, closing = started(diagnose, *logs)
    assert start["ranks"] == ranks and words in start["words"]
    assert "GLOBAL_RANK: 0" in start["text"]
    log = Path(start["file"]).read_bytes().decode().split("\n")
    assert start["text"] == log[start["line"] - 1].strip()
    assert closing.startswith("If the program hung: `LIGHTNING_PATCHES_HANG_TIMEOUT=300 lightning-patches")
    assert diagnose(diagnose.directory / "0.log") == 1
    if start["file"].endswith("0.log") and len(logs) == 1:
        assert diagnose.out.startswith("The program may hang at its start.") and closing in diagnose.out


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
)
def test_log_past_the_start_is_not_a_start_up_hang(diagnose: Diagnose, logs: list[str]) -> None:
    """Lines after all ranks have joined, or about steps and losses, show that the program runs."""
    start, closing = started(diagnose, *logs)
    assert start is None and "If the program hung" not in closing


def test_each_rank_twice_means_other_tasks_than_devices(diagnose: Diagnose) -> None:
    diagnose(diagnose.write("log.txt", "\n".join(line for line in JOINS for _ in range(2))))
    start = "Each rank runs twice: SLURM started another number of tasks than Trainer(devices=...)"
    assert diagnose.out.startswith(start)


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
def test_release_is_read_from_the_log(diagnose: Diagnose, text: str, releases: list[str]) -> None:
    document = diagnose.json(diagnose.write("log.txt", text + TRACEBACK))
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


def test_release_without_the_bug_is_excluded(diagnose: Diagnose) -> None:
    assert diagnose(diagnose.write("log.txt", "- lightning: 2.5.2\n" + TRACEBACK)) == 1
    assert diagnose.out.startswith("I don't know this error: `RuntimeError: No backend type")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("lightning==2.6.3\n", "2.6.3"),
        ("- pytorch-lightning: 2.6.2\n", "2.6.2"),
        ("Successfully installed lightning-2.6.2\n", "2.6.2"),
        ("PL 2.6.3\n", "2.6.3"),
        ("lightning version: 2.6.3\n", "2.6.3"),
        ("we went from PyTorch Lightning 2.6.1 to 2.6.2\n", "2.6.2"),
        ("pytorch-lightning 2.6.2 does not import", "2.6.2"),
        ("torch 2.6.3 and Lightning version 2.6.2", "2.6.2"),
        ("Lightning 2.6 with torch 2.6.3, CUDA 12.6.3", ""),
        ("lightning-utilities 2.6.3 beside lightning>=2.6.2", ""),
    ],
)
def test_compromised_release_is_reported_first_if_it_is_named(diagnose: Diagnose, text: str, release: str) -> None:
    logs = [diagnose.write(f"{n}.log", log) for n, log in enumerate((text, text + TRACEBACK, TRACEBACK + text))]
    for what in logs if text.endswith("\n") else [text]:
        diagnose(what)
        first, second = diagnose.out.splitlines()[:2]
        assert first.startswith(f"Lightning {release} from PyPI was compromised and runs hostile code") is bool(release)
        assert second.startswith("Do: Do not import it") is bool(release)


NUMBERED = ("lightning_patches/known/coverage.txt", "lightning_patches/known/duplicates.txt", "upstream/reports.txt")


@pytest.mark.parametrize("name", NUMBERED)
def test_show_and_diagnose_know_each_number_of_the_lists(capsys: pytest.CaptureFixture[str], name: str) -> None:
    numbers = sorted(set(re.findall(r"(?<![\d.])\d{5}(?![\d.])", (ROOT / name).read_text())))
    assert numbers
    unknown = []
    for number in numbers:
        for command in (["show", "--no-diff", "--json"], ["diagnose", "--json"]):
            status = cli.main([*command, number])
            document = json.loads(capsys.readouterr().out or "{}")
            if status or not (document.get("patches") or document.get("others") or document.get("verdict")):
                unknown.append((command[0], number))
    assert unknown == []


def test_every_number_of_coverage_and_every_name_is_known() -> None:
    for key in lookup.known():
        assert lookup.find(key), key
    every = [*all_patches(), *UNPATCHED, *frequent()]
    records = {one.name: one for one in every}
    assert len(records) == len(every)
    for number, name in lookup.duplicates():
        assert number not in records[name].numbers, "the record has this number"
