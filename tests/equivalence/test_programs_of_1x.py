"""Programs for Lightning 1.5 to 1.9: stock fails on today's packages, and with the shim they do what 1.9.5 does."""

import json
from functools import cache

import pytest
from packaging.version import Version

from lightning_patches import cli
from tests.support.variants import Variant, run

SCENARIO = "programs_of_1x"
SAME = "right"
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
"""Errors of stock, by letter; ``E`` is argparse's, with status 2."""
FIT = ("fit", "lr", "counts", "csv", "files", "schedulers", "resumed", "resumed_lr", "bf16", "averaged")
"""Observations that are equal from 1.5 to 1.9. Some checkpoint keys, and the rates of `lr_find`, differ."""


def expected(version, case):
    """Return the result of stock: :data:`SAME`, or its error."""
    minor = int(version.split(".")[1])
    if minor == 5 and case.startswith("cli"):
        return "D"
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


def saw(result, right):
    """Summarize a run; ``right`` are the expected observations."""
    if result.ok:
        return SAME if result.observations == right else "ends well, and is not right"
    letters = [letter for letter, words in FAILURES.items() if letter != "E" and words in result.output]
    if result.status == 2 and FAILURES["E"] in result.output:
        letters = ["E"]
    return letters[-1] if letters else f"status {result.status}"


@cache
def result_of(version, case, shim):
    return run(SCENARIO, Variant("pytorch-lightning", version, shim=shim), case, fresh=True)


def check(version, case, *names):
    """Stock fails as users report it; the shim observes what 1.9.5 does, where that runs."""
    stock, shim = result_of(version, case, False), result_of(version, case, True)
    wanted = expected(version, case)
    assert saw(stock, stock.observations) == wanted, stock
    assert shim.ok, shim
    right = result_of("1.9.5", case, True)
    assert right.ok and right.observations, right
    for mine, theirs in zip(shim.observations, right.observations):
        assert {name: mine.get(name) for name in names} == {name: theirs.get(name) for name in names}
    assert len(shim.observations) == len(right.observations)


@pytest.mark.parametrize("version", ["1.5.10", "1.6.5", "1.7.7", "1.8.0"])
def test_fit_with_scheduler_callbacks_and_logger_equals_1_9(version):
    check(version, "fit", *FIT)


@pytest.mark.parametrize("version", ["1.7.7", "1.5.10", "1.6.5", "1.8.6"])
def test_fit_without_a_scheduler_equals_1_9(version):
    check(version, "fit plain", *FIT)


@pytest.mark.parametrize("case", ["ddp", "ddp_spawn"])
@pytest.mark.parametrize("version", ["1.6.5", "1.5.10", "1.7.7", "1.8.0"])
def test_fit_on_two_ranks_equals_1_9(version, case):
    check(version, case, "metrics", "weight", "files", "best")


@pytest.mark.parametrize("case", ["cli scheduler", "cli path", "cli"])
@pytest.mark.parametrize("version", ["1.8.6", "1.6.5", "1.7.7"])
def test_command_line_program_equals_1_9(version, case):
    check(version, case, "first", "lr", "second", "epochs")


@pytest.mark.parametrize("version", ["1.6.5", "1.5.10", "1.7.7", "1.8.6", "1.9.5"])
def test_checkpoint_with_objects_loads_as_in_1_9(version):
    check(version, "objects", "tested", "resumed", "widths")


def test_command_line_of_1_5_is_unchanged():
    shim = result_of("1.5.10", "cli", True)
    assert saw(shim, None) == "D", shim


@pytest.mark.parametrize(
    ("version", "case", "name"),
    [
        ("1.5.10", "fit", "scheduler-types"),
        ("1.6.5", "fit", "scheduler-types"),
        ("1.7.7", "import", "torchmetrics-compare-version"),
        ("1.8.6", "cli scheduler", "scheduler-choices"),
        ("1.6.5", "cli scheduler", "scheduler-choices"),
        ("1.6.0", "cli", "command-line-descriptions"),
        ("1.6.5", "objects", "own-checkpoint-load"),
    ],
)
def test_diagnose_names_the_patch(version, case, name, capsys, tmp_path):
    (tmp_path / "train.log").write_text(result_of(version, case, False).output)
    requirement = f"pytorch-lightning=={version}"
    assert cli.main(["diagnose", "--json", "--requirement", requirement, str(tmp_path / "train.log")]) == 0
    names = [match["name"] for match in json.loads(capsys.readouterr().out)["matches"]]
    assert names[0] == name
