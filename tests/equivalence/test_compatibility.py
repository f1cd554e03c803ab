"""Scripts, jobs and CI for 0.1.0 still work, or the changelog says what to change.

The tables list the interface of 0.1.0. ``LISTED`` maps each changed part to words from the changelog.
"""

from __future__ import annotations

import configparser
import dataclasses
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import lightning_patches
from lightning_patches import cli, notices
from lightning_patches.engine import toggle
from lightning_patches.engine.gate import Verdict
from lightning_patches.fork import diffs, wheel
from lightning_patches.patch import RENAMED
from lightning_patches.patches import all_patches, find
from lightning_patches.ranks import hang, rank_by_rank
from lightning_patches.ranks.hang import _files, _report, _secret, _settings
from tests.support.variants import ROOT

import _releases  # isort: skip

PATCHES = {
    "correctness": """
        accumulation-across-validation accumulation-without-batch-idx async-checkpoint-snapshot autocast-after-no-grad
        batch-sampler-shuffled batch-size-finder-tried-size batch-size-finder-val-loader callback-state-in-evaluation*
        checkpoint-after-validation checkpoint-kept-on-resume checkpoint-overwritten checkpoint-permission-error
        csv-logger-flush csv-logger-own-file* csv-logger-step dataloader-check-without-iterating
        ddp-evaluation-same-weights ddp-static-graph-manual default-dtype-restored distributed-sampler-without-seed
        evaluation-step-of-checkpoint* fabric-autocast-after-no-grad fabric-optimizer-load-state fabric-replaced-methods
        fabric-step-methods fabric-submodule-sync fit-resets-should-stop frozen-batch-norm fsdp-initial-precision
        hparams-ignored-in-subclass* hydra-output-directory load-from-checkpoint-device logged-number-precision
        logged-tensor-precision lr-finder-applies-lr lr-finder-restarting-flag lr-finder-slope* lr-finder-train-loader
        lr-finder-val-loader manual-optimizer-state plain-batch-sampler* remote-checkpoint-kept-on-resume
        resume-single-iteration sampler-set-epoch sigterm-exit-status skipped-epoch-schedulers spawned-parameters
        stateful-loader-restored swa-infinite-epochs swa-keeps-trained-weights synced-mean-batch-sizes
        tuner-cleanup-on-error validation-after-short-epoch validation-own-randomness* warn-mid-epoch-resume
        weight-averaging-before-start worker-seed-sequence""",
    "crash": """
        align-devices amp-skipped-batch async-checkpoint-reuse batch-sampler-without-sampler
        checkpoint-exists-on-rank-zero checkpoint-extra-state checkpoint-name-similar-metrics
        cli-both-save-hyperparameters cli-checkpoint-of-subclass copy-during-training cpu-beside-broken-cuda
        dataclass-hparams dataloader-error-unmasked fabric-method-guard-hooks fabric-module-without-parameters
        fabric-precision-from-cli finetuning-with-lr-finder fused-optimizer-clipping hparams-that-yaml-refuses
        init-module-data interval-without-validation legacy-checkpoint-enum legacy-checkpoint-threads
        logged-metrics-device mpi-without-library optimizer-closure-grad own-checkpoint-load
        plateau-waits-for-validation resume-infinite-validation rich-progress-bar-resumed tuner-temporary-checkpoint
        worker-shutdown-error""",
    "security": "checkpoint-class-imports* checkpoint-instantiator",
    "performance": """
        checkpoint-written-once log-metrics-without-move progress-bar-without-wait resumed-optimizer-step-device
        sequential-loader-workers""",
    "compat": """
        compiled-log fabric-compiled-module fabric-mark-forward-method import-without-pkg-resources rich-progress-bar
        trusted-checkpoint-load""",
    "hang": """
        dead-rank-ends-job* first-context-on-own-gpu* prepare-data-without-deadline* process-group-device-id*
        sigterm-at-batch-boundary""",
}
"""The names by group; with a star those that were opt-in."""
NUMBERS = """
    3455 8130 9352 9815 10290 10496 12354 15688 16426 16827 17130 17189 17250 17308 17370 17407 17417 17424 17441
    17610 17636 17639 17678 17713 17812 17888 17942 18060 18094 18145 18218 18238 18267 18268 18280 18394 18415
    18488 18500 18619 18686 18710 18750 18803 18854 18928 19023 19046 19064 19177 19184 19234 19373 19446 19448
    19558 19624 19674 19690 19705 19804 19813 19814 19818 19819 19916 19955 20010 20019 20052 20081 20185 20221
    20276 20293 20326 20327 20369 20379 20388 20403 20412 20514 20550 20565 20624 20629 20644 20775 20825 20919
    20921 20952 21000 21016 21051 21055 21056 21068 21079 21105 21106 21162 21187 21224 21232 21246 21251 21253
    21266 21296 21307 21353 21380 21396 21399 21435 21436 21454 21456 21487 21490 21531 21552 21560 21586 21616
    21623 21652 21703 21708 21714 21724 21732 21754 21757 21758 21765 21770 21799 21800 21813 21822 21824 21832
    21836 21837 21838 21839 21913 21914 21945"""
SIGNATURES = {
    "GradientSyncCheck.__init__": "self, every_n_steps=100, action='warn', gradients=True, parameters=True, "
    "buffers=False, optimizer_state=False",
    "GradientSyncCheck.check": "self, module, optimizer=None, step=0",
    "GradientSyncCheck.watch": "self, module",
    "GradientSyncError.__init__": "self, message, differences=()",
    "activate": "spec=None",
    "deactivate": "",
    "rank_by_rank": "at_once=1, timeout=1800.0, name=''",
    "report": "",
    "trust_checkpoints": "directory",
    "trust_instantiator": "path",
    "trust_module": "name",
    "watch_hangs": "timeout, abort=False",
}
ERRORS = {
    "GradientSyncError": RuntimeError,
    "LightningPatchesError": Exception,
    "PatchError": RuntimeError,
    "RankByRankError": RuntimeError,
    "ToggleError": ValueError,
}
STATUSES = """
    0 status --group crash --verdict pending --all logged-metrics-device
    2 status nosuch
    2 status --verdict nosuch
    0 list --group crash
    2 list --group nosuch
    0 show --no-diff 19813
    2 show nosuch
    0 audit
    1 audit lightning==2.2.5
    0 audit lightning==2.6.6
    3 audit lightning==2.9.9
    3 audit lightning==1.9.5
    1 audit lightning==2.6.2
    2 audit numpy==1.0
    2 audit nosuch.txt
    2 audit .
    1 audit --fail-on any lightning==2.6.6
    1 audit --fail-on opt-in lightning==2.6.6
    0 audit --fail-on uncovered lightning==2.6.6
    0 audit --fail-on never --requirement lightning==2.2.5
    0 audit --ignore mid-epoch-resume --ignore lightning-app --ignore fsdp-metrics-device lightning==2.1.0
    0 audit --ignore mid-epoch-resume --fixes --group crash --format sarif lightning==2.2.5
    1 audit --format markdown lightning==2.2.5
    1 audit --format github -r requirements.txt
    2 audit -r nosuch.txt
    0 diagnose "validation runs too early after a checkpoint"
    1 diagnose --requirement lightning==2.2.5 "RuntimeError: zzz"
    0 diagnose "IndexError: pop from empty list"
    2 diagnose nosuch.log
    7 diagnose -- sh -c "exit 7"
    2 doctor nosuch.py
    2 run
    127 run nosuch
    126 run .
    2 run --patches nosuch true
    7 run --patches off sh -c "exit 7"
    7 run -- sh -c "exit 7"
    1 run -m nosuch
    2 autostart nosuch
    0 report
    2 hang nosuch
    2 nosuch
    0 --version"""
FIELDS = {
    "status --json": """
        schema:int lightning_patches:str python:dict python.version:str python.executable:str toggle:dict
        toggle.variable:str toggle.value:NoneType toggle.error:NoneType toggle.strict:bool toggle.quiet:bool
        toggle.selected[]:str distributions[].distribution:str distributions[].version:str distributions[].namespace:str
        distributions[].packages.pytorch_lightning:str distributions[].packages.lightning_fabric:str
        distributions[].forbidden:bool distributions[].note:str patches[].patch:str patches[].namespace:str
        patches[].distribution:str patches[].version:str patches[].verdict:str patches[].reason:str
        patches[].drop_at:NoneType|str patches[].counted:bool patches[].title:str patches[].group:str
        patches[].default:bool summary.pytorch_lightning.pending:int summary.pytorch_lightning.applied:int
        summary.pytorch_lightning.disabled:int summary.pytorch_lightning.not-supported:int
        summary.pytorch_lightning.drifted:int summary.pytorch_lightning.failed:int
        summary.pytorch_lightning.fixed-upstream:int summary.pytorch_lightning.not-affected:int
        fixes:dict ok:bool""",
    "list --json": """
        []:dict [].name:str [].title:str [].group:str [].default:bool [].affected[]:str [].affected_releases[]:str
        [].fixed_in:NoneType|str [].merged:bool [].issues[]:int [].pull_requests[]:int [].commit:str [].tests[]:str
        [].summary:str [].symptoms[]:str [].targets[].location:str [].targets[].adds:bool [].targets[].since:str
        [].targets[].before:str [].witnesses[]:str [].further_than_upstream:str [].equivalent_to:str [].note:str
        [].relied_on:str [].relied_on_tests:list [].warns_of:str""",
    "show --json 19813": "[].name:str [].diffs[].path:str [].diffs[].text:str",
    "audit --json": """
        schema:int toggle.value:NoneType toggle.selected[]:str audited[].distribution:str audited[].version:str
        audited[].requirement:NoneType audited[].file:str audited[].line:int audited[].known:bool audited[].notes:list
        audited[].bugs[].name:str audited[].bugs[].title:str audited[].bugs[].group:str audited[].bugs[].harm:str
        audited[].bugs[].affected[]:str audited[].bugs[].fixed_in:NoneType|str audited[].bugs[].drop_at:NoneType|str
        audited[].bugs[].move_to:NoneType|str audited[].bugs[].cover:str audited[].bugs[].covered:bool
        audited[].bugs[].reason:str audited[].bugs[].issues[]:int audited[].bugs[].pull_requests[]:int
        audited[].bugs[].advisories:list audited[].headline:str audited[].upstream.patched:int
        audited[].upstream.open:int audited[].upstream.not_patchable:int audited[].upstream.nothing_to_patch:int
        audited[].upstream.left_out:int fail_on:str ok:bool""",
    'diagnose --json "the resumed run repeats the validation"': """
        schema:int file:str files:list matches[].name:str matches[].title:str matches[].group:str matches[].summary:str
        matches[].symptom:str matches[].file:str matches[].line:int matches[].text:str matches[].kind:str
        matches[].cause:bool matches[].certain:bool matches[].ruled_out:bool matches[].verdicts:list
        matches[].would_tell:str matches[].advice:str matches[].fixed_in:NoneType|str
        matches[].patched:bool
        matches[].issues:list matches[].pull_requests[]:int error:NoneType hangs:list start:NoneType closing:str
        ok:bool""",
    "doctor --no-torch --timeout 9 --strict --json train.py": """
        schema:int findings[].check:str findings[].severity:str findings[].what:str findings[].why:str
        findings[].do:str checks[]:str unknown:list facts:dict ok:bool""",
    "report --json": """
        lightning-patches:str Lightning.pytorch-lightning:str Python:str system:str packages:dict LIGHTNING_PATCHES:str
        fixes:dict not_applied:str""",
    "autostart status --json": "enabled:bool site:str files:list",
    "hang show --json": "schema:int jobs:list ok:bool",
}
"""Of the JSON documents beside pytorch-lightning 2.2.5. A blank in a key is written as ``_``."""
LISTED = {
    **dict.fromkeys(("checkpoint-after-validation is opt-in", "checkpoint-written-once is opt-in",
     "progress-bar-without-wait is opt-in", "sampler-set-epoch is opt-in", "tuner-temporary-checkpoint is opt-in"),
     "Five patches are off by default now"),
    **dict.fromkeys(("resume-single-iteration is opt-in", "stateful-loader-restored is opt-in"),
     "`resume-single-iteration` and `stateful-loader-restored`, and"),
    "batch-size-finder-tried-size is opt-in": "`batch-size-finder-tried-size` is off by default",
    "skipped-epoch-schedulers is opt-in": "`skipped-epoch-schedulers` is off by default",
    "a patch by name also selects import-without-pkg-resources": "the patches without which `import lightning` fails",
    "audit lightning==1.9.5 ends with 1": "`audit` knows 1.5 to 1.9",
    "audit . ends with 0": "takes a directory",
    "audit --format github -r requirements.txt ends with 0": "ends with status 0 for `pytorch-lightning==2.2.5`",
    'diagnose "IndexError: pop from empty list" ends with 1': "a single line that any program could have written",
    "list --json: patches": "print an object; the array of before is its `patches`",
    "show --json 19813: patches": "print an object; the array of before is its `patches`",
    **{f"list --json: {name} is empty": "are empty; the texts are in `note`"
     for name in ("further_than_upstream", "equivalent_to", "relied_on", "relied_on_tests")},
    "SARIF leaves out what the patches mend": "leave out the bugs that the patches fix; `--all`",
    "build_fork is lightning-patches fork": "`lightning-patches fork` replaces `scripts/build_fork`",
    "a fork of 2.2.5 holds the default set": "and holds the default set",
    "the number of a fork is 3": "`2.2.5+patches.3`",
    "the diffs are in upstream/diffs": "`upstream/diffs/`",
}  # fmt: skip


def names(*, default_only: bool = False) -> set[str]:
    words = {word for group in PATCHES.values() for word in group.split()}
    kept = {word for word in words if "*" not in word} if default_only else {word.rstrip("*") for word in words}
    return {RENAMED.get(name, name) for name in kept}


def selected(spec: str) -> set[str]:
    """Return the patches of 0.1.0 that a toggle selects."""
    return set(toggle.parse(spec, all_patches()).names) & names()


def test_earlier_names_select_the_patches_that_replace_them() -> None:
    for name, now in RENAMED.items():
        for prefix in ("", "-"):
            old, new = (toggle.parse(prefix + item, all_patches()).names for item in (name, now))
            assert old == new and (now in old) == (not prefix)
        assert [patch.name for patch in find(name)] == [now]


def listed(subject: str) -> set[str]:
    return {change for change in LISTED if re.search(subject, change)}


@pytest.fixture(autouse=True)
def as_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("LIGHTNING_PATCHES", "_LIGHTNING_PATCHES_IMPORT_ONLY"):
        monkeypatch.delenv(name, raising=False)


def call(arguments: str, *path: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lightning_patches", *shlex.split(arguments)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *path])}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)


def test_changelog_describes_every_incompatible_change() -> None:
    text = (ROOT / "lightning_patches" / "CHANGELOG.md").read_text(encoding="utf-8")
    later, _, _ = text.partition("## 0.1.0")
    assert [words for words in LISTED.values() if words not in " ".join(later.split())] == []


def test_every_earlier_patch_can_be_selected() -> None:
    assert {patch.name for patch in all_patches() if patch.added == "0.1.0"} == names()
    default = {patch.name for patch in all_patches() if patch.default}
    changed = {f"{name} is opt-in" for name in names(default_only=True) - default}
    changed |= {f"{name} is default" for name in (names() - names(default_only=True)) & default}
    assert changed == listed(" is (opt-in|default)$")
    for name in names():
        assert name in selected(name) and name in selected(f"default,{name}"), name
        assert name not in selected(f"all,-{name}") | selected(f"all,no-{name}"), name
    others = {f"a patch by name also selects {other}" for name in names() for other in selected(name) - {name}}
    assert others == listed("^a patch by name")
    for number in NUMBERS.split():
        for item in (number, f"#{number}", f"PR{number}", f"pr #{number}"):
            assert selected(f"none,{item}"), item


def test_every_toggle_word_selects_as_in_0_1_0() -> None:
    default = names() & {patch.name for patch in all_patches() if patch.default}
    for word in ("1", "on", "TRUE", "yes", "default", "strict", "quiet", "", "strict quiet"):
        assert selected(word) == default, word
    for word in ("0", "off", "False", "no", "none"):
        assert selected(word) == set(), word
    assert selected("all") == names()
    for group, members in PATCHES.items():
        every = {RENAMED.get(name, name) for name in members.replace("*", "").split()}
        assert selected(f"none,{group}") == (every if group == "security" else every & default), group
        assert selected(f"all,-{group}") == selected(f"all no-{group}") == names() - every, group
    flags = toggle.parse("strict,quiet", all_patches())
    assert flags.strict and flags.quiet


def test_every_public_name_accepts_earlier_arguments() -> None:
    for name, before in SIGNATURES.items():
        public: Any = lightning_patches
        for part in name.split("."):
            public = getattr(public, part)
        found = [
            one.name if one.default is one.empty else f"{one.name}={one.default!r}"
            for one in inspect.signature(public).parameters.values()
        ]
        wanted = before.split(", ") if before else []
        assert found[: len(wanted)] == wanted and all("=" in more for more in found[len(wanted) :]), name
    for name, base in ERRORS.items():
        error = getattr(lightning_patches, name)
        assert issubclass(error, base) and issubclass(error, lightning_patches.LightningPatchesError), name
    assert isinstance(lightning_patches.report(), list)


def test_every_earlier_message_exists(capfd: pytest.CaptureFixture[str]) -> None:
    verdicts = "applied pending not-affected fixed-upstream disabled not-supported drifted failed"
    assert set(verdicts.split()) <= set(get_args(Verdict))
    variables = (_settings.VARIABLE, _files.VARIABLE, _secret.VARIABLE, _secret.PORT_VARIABLE, rank_by_rank.VARIABLE)
    before = "HANG_TIMEOUT HANG_DIR HANG_SECRET HANG_PORT RANK_BY_RANK"
    assert variables == tuple(f"{toggle.VARIABLE}_{name}" for name in before.split())
    states = "name rank where kind call seconds place text detail collective works unseen children recorder"
    assert set(states.split()) <= {field.name for field in dataclasses.fields(_report.State)}
    assert hang.STATUS == 124
    notices.say("a line")
    assert capfd.readouterr().err == "lightning_patches: a line\n"


def test_every_command_exits_as_in_0_1_0() -> None:
    Path("requirements.txt").write_text("pytorch-lightning==2.2.5\n")
    changed = set()
    for line in STATUSES.strip().splitlines():
        status, arguments = line.split(maxsplit=1)
        becomes_another = arguments.startswith("run")
        found = call(arguments).returncode if becomes_another else cli.main(shlex.split(arguments))
        if found != int(status):
            changed.add(f"{arguments} ends with {found}")
    assert changed == listed(" ends with ")


def fields(value: object, path: str = "") -> dict[str, set[str]]:
    """Return the types at each path of a document."""
    found = {path: {type(value).__name__}}
    inner = [(f"{path}.{key}", item) for key, item in value.items()] if isinstance(value, dict) else []
    inner += [(f"{path}[]", item) for item in value] if isinstance(value, list) else []
    for place, item in inner:
        for key, types in fields(item, place).items():
            found.setdefault(key, set()).update(types)
    return {key.lstrip(".").replace(" ", "_"): types for key, types in found.items()}


@pytest.mark.parametrize("command", FIELDS)
def test_every_json_field_exists(command: str) -> None:
    Path("train.py").write_text("import pytorch_lightning\n")
    document = json.loads(call(command, str(_releases.unpacked("pytorch-lightning", "2.2.5"))).stdout)
    changed = set()
    if isinstance(document, dict) and FIELDS[command].split()[0].startswith("[]"):
        document = document["patches"]
        changed.add(f"{command}: patches")
    found = fields(document)
    for field in FIELDS[command].split():
        path, _, types = field.rpartition(":")
        assert found.get(path) and found[path] <= set(types.split("|")), (field, found.get(path))
    if command.startswith("list"):
        changed |= {f"{command}: {key} is empty" for key in document[0] if not any(one[key] for one in document)}
    assert changed == listed(f"^{re.escape(command)}: ")


def test_sarif_has_the_fields_of_0_1_0() -> None:
    (run,) = json.loads(call("audit --format sarif lightning==2.2.5").stdout)["runs"]
    levels = {result["level"] for result in run["results"]}
    changed = set() if levels == {"error", "warning", "note"} else {"SARIF leaves out what the patches mend"}
    assert changed == listed("^SARIF") and levels >= {"error", "warning"}
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {one["ruleId"] for one in run["results"]}


def test_fork_is_built_as_in_0_1_0() -> None:
    changed = set()
    if not (ROOT / "scripts" / "build_fork").exists():
        changed.add("build_fork is lightning-patches fork")
    if set(wheel.default_set()) < {diff.name for diff in diffs.series()}:
        changed.add("a fork of 2.2.5 holds the default set")
    if diffs.NUMBER != 1:  # builds of 0.1.0 have other bytes
        changed.add(f"the number of a fork is {diffs.NUMBER}")
    if not (ROOT / "upstream" / "logged-metrics-device.patch").exists():
        changed.add("the diffs are in upstream/diffs")
    assert changed == listed("fork|diffs")


def test_installed_files_are_at_their_places() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    assert settings["options"]["python_requires"] == ">=3.8"
    assert settings["options"]["install_requires"].split() == ["packaging>=21", "wrapt>=1.14"]
    assert {"audit", "completion"} <= set(settings["options.extras_require"])
    for group in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"):
        entry = settings["options.entry_points"][f"{group}.callbacks_factory"].strip()
        assert entry == "lightning_patches = _lightning_patches:callbacks"
    assert (
        settings["options.entry_points"]["console_scripts"].strip() == "lightning-patches = lightning_patches.cli:main"
    )
