"""Programs for Lightning 1.5 to 1.9: stock fails on today's packages, and with the shim they do what 1.9.5 does.

That each release does what it did on the packages of its time, `scripts/prove programs_of_1x` shows.
"""

import json
from functools import cache

import pytest

from lightning_patches import cli
from tests.equivalence import programs_of_1x as programs
from tests.support.arms import Arm, Result, run

SCENARIO = programs.SCENARIO
FIT = ("fit", "lr", "counts", "csv", "files", "schedulers", "resumed", "resumed_lr", "bf16", "averaged")
"""What does not differ from 1.5 to 1.9. Some keys of checkpoints, and what `lr_find` tries, do."""


@cache
def result_of(version, case, shim):
    return run(SCENARIO, Arm("pytorch-lightning", version, shim=shim), case, fresh=True)


def check(version, case, *names):
    """Stock fails as users report it; the shim observes what 1.9.5 does, where that runs."""
    stock, shim = result_of(version, case, False), result_of(version, case, True)
    wanted = programs.expected(version, case, programs.STOCK)
    assert programs.saw(stock, stock.observations) == wanted, stock
    assert shim.ok, shim
    right = result_of("1.9.5", case, True)
    assert right.ok and right.observations, right
    for mine, theirs in zip(shim.observations, right.observations):
        assert {name: mine.get(name) for name in names} == {name: theirs.get(name) for name in names}
    assert len(shim.observations) == len(right.observations)


@pytest.mark.parametrize("version", ["1.5.10", "1.6.5", "1.7.7", "1.8.0"])
def test_fit_with_a_scheduler_and_everything_around_it(version):
    check(version, "fit", *FIT)


@pytest.mark.parametrize("version", ["1.7.7", "1.5.10", "1.6.5", "1.8.6"])
def test_fit_without_a_scheduler(version):
    check(version, "fit plain", *FIT)


@pytest.mark.parametrize("case", ["ddp", "ddp_spawn"])
@pytest.mark.parametrize("version", ["1.6.5", "1.5.10", "1.7.7", "1.8.0"])
def test_two_ranks(version, case):
    check(version, case, "metrics", "weight", "files", "best")


@pytest.mark.parametrize("case", ["cli scheduler", "cli path", "cli"])
@pytest.mark.parametrize("version", ["1.8.6", "1.6.5", "1.7.7"])
def test_the_command_line(version, case):
    check(version, case, "first", "lr", "second", "epochs")


@pytest.mark.parametrize("version", ["1.6.5", "1.5.10", "1.7.7", "1.8.6", "1.9.5"])
def test_objects_in_a_checkpoint(version):
    check(version, "objects", "tested", "resumed", "widths")


def test_the_command_line_of_1_5_stays_as_it_is():
    shim = result_of("1.5.10", "cli", True)
    assert programs.saw(shim, None) == "D", shim


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


def test_all_is_as_it_has_to_be():
    _, seen = programs.read()
    assert seen
    for one in seen:
        case, arm = one.case.split(": ")
        assert one.saw == programs.expected(one.place[1], case, arm), one


def test_failures_are_told_apart():
    for letter, words in programs.FAILURES.items():
        result = Result(2 if letter == "E" else 1, f"Traceback\n{words} x\n")
        assert programs.saw(result, None) == letter
    assert programs.saw(Result(1, "Traceback\n error: x\n"), None) == "status 1"
    well = Result(0, "", [{"loss": 1}])
    assert programs.saw(well, [{"loss": 1}]) == programs.SAME != programs.saw(well, [{"loss": 2}])
