"""Programs for Lightning 1.5 to 1.9 on today's packages: ``upstream/evidence/programs_of_1x.txt``, and its page.

Right is what the same release observes on a stack of its time. Stock fails as users report it, or does what is right.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from packaging.version import Version

from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from tests.equivalence import evidence, matrix
from tests.equivalence.content import content
from tests.equivalence.evidence import Seen
from tests.equivalence.stacks import Environment
from tests.support.arms import SCENARIOS, Result

SCENARIO = "programs_of_1x"
RECORD = evidence.DIRECTORY / "programs_of_1x.txt"
RELEASES = ("1.5.10", "1.6.0", "1.6.5", "1.7.0", "1.7.7", "1.8.0", "1.8.6", "1.9.0", "1.9.5")
CASES = {
    "import": "`import pytorch_lightning`",
    "fit": "fit with a scheduler: checkpoints, resume, loggers, callbacks, bf16, averaged weights, `lr_find`",
    "fit plain": "the same without a scheduler",
    "evaluate": "`validate`, `test`, `predict`, `load_from_checkpoint`",
    "ddp": "DDP, two ranks, started by running the program again",
    "ddp_spawn": "DDP, two ranks, spawned",
    "cli": "LightningCLI, and again with the configuration that it wrote",
    "cli scheduler": "the same with `--optimizer=SGD --lr_scheduler=ExponentialLR`",
    "cli path": "the same with `--lr_scheduler.class_path=torch.optim.lr_scheduler.ExponentialLR`",
    "objects": "objects of one's own in a checkpoint: `test`, resume, `load_from_checkpoint`, another's file",
}
OLD, STOCK, SHIM, STOCK_84, SHIM_84 = "its time", "stock", "shim", "stock, setuptools 84", "shim, setuptools 84"
SHIM_OLD = "shim, its time"
ARMS = (OLD, STOCK, SHIM, STOCK_84, SHIM_84, SHIM_OLD)
FAILURES = {
    "A": "cannot import name '_compare_version' from 'torchmetrics.utilities.imports'",
    "B": 'The provided lr scheduler "<',
    "C": "doesn't follow PyTorch's LRScheduler API",
    "D": "cannot import name '_ActionSubCommands' from 'jsonargparse.actions'",
    "E": "error: ",
    "F": "Weights only load failed",
    "G": "Could not generate a config for",
    "H": "TypeError: 'module' object is not callable",
    "P": "No module named 'pkg_resources'",
}
"""How stock fails, by the letters of the page; ``E`` is argparse's, with status 2."""
SAME = "as in its time"
STACK = Environment(
    "1.13.1",
    "3.9",
    RELEASES,
    (
        "numpy==1.23.5",
        "torchmetrics==0.11.4",
        "jsonargparse[signatures]==4.18.0",
        "lightning-utilities==0.6.0.post0",
        "fsspec[http]==2023.1.0",
        "rich==13.3.1",
        "packaging==23.0",
        "setuptools==65.7.0",
        "tensorboard==2.11.2",
        "tensorboardX==2.5.1",
        "protobuf==3.20.1",
        "pyDeprecate==0.3.2",
        "six==1.16.0",
    ),
)


def expected(version: str, case: str, arm: str) -> str:
    """What has to be seen: :data:`SAME`, or how it fails. Only the command line of 1.5 stays broken with the shim."""
    minor = int(version.split(".")[1])
    if arm in (OLD, SHIM_OLD):
        return SAME
    if minor == 5 and case.startswith("cli") and arm != STOCK_84:
        return "D"
    if arm.startswith("shim"):
        return SAME
    if arm == STOCK_84:
        return "P"
    if minor == 7:
        return "A"
    if version == "1.6.0" and case.startswith("cli"):
        return "H"
    if case == "objects":
        return "F"
    if case in ("cli scheduler", "cli path") and minor < 9:
        return "G" if (minor, case) == (6, "cli scheduler") else "E"
    if case in ("fit", "ddp", "ddp_spawn", "cli") and Version(version) < Version("1.8.4"):
        return "B" if minor == 5 else "C"
    return SAME


def saw(result: Result, right: Any) -> str:
    """What came of a run; ``right`` is what was observed in its time."""
    if result.ok:
        return SAME if result.observations == right else "ends well, but not as in its time"
    letters = [letter for letter, words in FAILURES.items() if letter != "E" and words in result.output]
    if result.status == 2 and FAILURES["E"] in result.output:
        letters = ["E"]
    return letters[-1] if letters else f"status {result.status}"


@cache
def subject(version: str, arm: str) -> str:
    """What an outcome depends on; it holds as long as that is the same."""
    found = hashlib.sha256(repr(STACK).encode())
    for name in (SCENARIO, "_model_1x", "_scenario"):
        found.update(content(SCENARIOS / f"{name}.py"))
    for patch in catalogue.all_patches() if arm.startswith("shim") else ():
        if patch.default and gate.in_ranges(version, patch.ranges):
            for part in (repr(patch.ranges).encode(), *matrix.code(patch.name)):
                found.update(part)
    return found.hexdigest()[:16]


def read() -> tuple[dict[str, Any], list[Seen]]:
    """The record's circumstances, and what was seen of each case in each arm and release."""

    def now(one: Seen) -> str:
        case, _, arm = one.case.partition(": ")
        return subject(one.place[1], arm) if case in CASES and one.place[1] in RELEASES else ""

    return evidence.read(RECORD, now)


def page() -> str:
    """``upstream/PROGRAMS_OF_1X.md``"""
    facts, seen = read()
    stale = sum(one.stale for one in seen)
    found = {(*one.case.split(": "), one.place[1]): one.saw for one in seen}
    wrong = [key for key, told in found.items() if told != expected(key[2], key[0], key[1])]
    lines = [
        "# Programs for Lightning 1.5 to 1.9 on today's packages",
        "",
        f"**{len(seen)} runs: {len(seen) - stale} hold on this code, {stale} are stale; {len(wrong)} are not as they "
        "have to be.**",
        "",
        "Made of `evidence/programs_of_1x.txt`, which `scripts/prove programs_of_1x` writes. Each program "
        "(`tests/scenarios/programs_of_1x.py`) was run on the release as it is and with `import lightning_patches`, "
        f"with {facts.get('today', '')}, and on the same release with {facts.get('its time', '')} "
        f"({facts.get('date', '')}).",
        "",
        "**✓**: it does what it did on the stack of its time: the same losses (to five digits; two in bf16), learning "
        "rates, weights, files, keys of checkpoints and columns of logs. A letter is how it fails.",
        "",
    ]
    for arm in ARMS[1:]:
        title = f"{arm}, setuptools 80" if arm in (STOCK, SHIM) else arm.replace("its time", "packages of its time")
        lines += [f"## {title[0].upper()}{title[1:]}", ""]
        lines += ["| | " + " | ".join(RELEASES) + " |", "| --- |" + " --- |" * len(RELEASES)]
        for case, words in CASES.items():
            cells = [found.get((case, arm, version), "") for version in RELEASES]
            if any(cells):
                shown = ["✓" if cell == SAME else cell or "not run" for cell in cells]
                lines.append(f"| {words} | {' | '.join(shown)} |")
        lines.append("")
    said = {"E": "argparse ends the program with status 2"}
    lines += [f"- {letter}: {said.get(letter, f'`{words}`')}" for letter, words in FAILURES.items()]
    lines += [
        "",
        "The command line of 1.5 stays as it is (`command-line-of-1-5` in `lightning_patches/unpatched.py`): "
        "`lightning-patches diagnose` and `audit` say so, and to which release to go. With setuptools 84 stock does "
        "not get beyond `import`, so nothing else was run there. pip 24.1 and later refuses to install some of these "
        "releases (`metadata-of-1x`).",
    ]
    return "\n".join(lines) + "\n"
