"""``rank_by_rank`` with real processes."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any, Optional

import pytest

from tests.distributed.processes import PROGRAMS, Ended, run_ranks
from tests.support.ports import free_port
from tests.support.run import execute, python
from tests.support.variants import Variant, environment_of

distributed = pytest.mark.distributed


@pytest.fixture
def environment() -> dict[str, str]:
    """Return the variables of a job. The names of the locks depend on ``MASTER_PORT``."""
    return {}


@pytest.fixture(params=["", "macos"])
def on_each_system(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return ``environment``, on this system and without ``/proc``."""
    return {"OTHER_SYSTEM": request.param}


def most_at_once(ended: Ended) -> int:
    """Return the maximum number of ranks that were inside at the same time."""
    moments = []
    for output in ended.outputs:
        for sign, word in ((1, "from"), (-1, "until")):
            moments += [(float(found), sign) for found in re.findall(rf"inside {word} ([\d.]+)", output)]
    inside, most = 0, 0
    for _, sign in sorted(moments):
        inside += sign
        most = max(most, inside)
    return most


def ranks(*actions: str, size: int = 1, at_once: int = 1, timeout: float = 60) -> list[Optional[list[str]]]:
    return [[action, str(size), str(at_once), str(timeout)] for action in actions]


@distributed
@pytest.mark.parametrize(("at_once", "most"), [(4, 4), (2, 2), (1, 1)])
def test_peak_memory_is_one_copy_per_rank_inside(at_once: int, most: int, environment: dict[str, str]) -> None:
    """Four ranks with 100 MB each. ``at_once=4`` is the case without turns."""
    ended = run_ranks("turns", ranks(*4 * ["loads"], size=100, at_once=at_once), environment, memory=True)
    assert ended.statuses == 4 * [0], ended
    assert most_at_once(ended) == most, ended
    idle = 4 * 35
    assert 100 * most - 10 < ended.peak_megabytes < 100 * most + idle, (ended.peak_megabytes, ended)


@distributed
def test_rank_that_dies_inside_releases_the_others(on_each_system: dict[str, str]) -> None:
    ended = run_ranks("turns", ranks("dies", "late_loads", "late_loads"), on_each_system)
    assert ended.statuses == [-9, 1, 1], ended
    for output in ended.outputs[1:]:
        assert re.search(r"RankByRankError: \[rank [12]\] rank 0 \(host \S+, pid \d+\) died during its turn", output)
    assert ended.seconds < 60  # not at the timeout


@distributed
@pytest.mark.parametrize("late", ["late_loads", "loads"])
def test_three_ranks_take_turns(late: str, on_each_system: dict[str, str]) -> None:
    ended = run_ranks("turns", ranks("loads", late, late), on_each_system)
    assert ended.statuses == [0, 0, 0] and most_at_once(ended) == 1, ended
    assert all(output.count("inside until") == 1 for output in ended.outputs), ended


@distributed
def test_missing_file_locks_cause_a_warning() -> None:
    ended = run_ranks("turns", ranks("loads", "loads", "loads", at_once=3), {"OTHER_SYSTEM": "windows"})
    assert ended.statuses == [0, 0, 0], ended
    printed = "rank_by_rank needs file locks, so ranks take no turns: this system lacks fcntl.flock"
    assert all(output.count(printed) == 1 for output in ended.outputs), ended


@distributed
def test_rank_that_raises_inside_releases_the_others(environment: dict[str, str]) -> None:
    ended = run_ranks("turns", ranks("raises", *2 * ["loads_when_rank_0_has_ended"]), environment)
    assert ended.statuses == [1, 1, 1], ended
    for output in ended.outputs[1:]:
        assert "raised an error during its turn, and has ended: OSError: no space left on device" in output, ended


@distributed
def test_caught_error_does_not_stop_other_ranks(environment: dict[str, str]) -> None:
    ended = run_ranks("turns", ranks("raises_and_goes_on", "late_loads", "loads_last"), environment)
    assert ended.statuses == [0, 0, 0], ended
    assert ended.outputs[2].endswith("done\n")


@distributed
def test_timeout_error_names_the_ranks_inside(environment: dict[str, str]) -> None:
    ended = run_ranks(
        "turns", ranks("stops", "late_loads", timeout=1.5), environment, leave_when="did not get its turn"
    )
    assert re.search(
        r"\[rank 1\] did not get its turn within 1.5 s. Inside: rank 0 \(pid \d+\) for \d+ s, the process is stopped",
        ended.outputs[1],
    ), ended


@distributed
def test_records_of_an_earlier_job_are_ignored(on_each_system: dict[str, str]) -> None:
    port = {"MASTER_PORT": str(free_port())}  # the locks' names depend on it
    first = run_ranks("turns", ranks("dies", "late_loads"), {**on_each_system, **port})
    again = run_ranks("turns", ranks("loads", "loads"), {**on_each_system, **port})
    assert first.statuses == [-9, 1] and again.statuses == [0, 0], (first, again)


@distributed
@pytest.mark.parametrize("what", ["thread", "child"])
def test_thread_or_child_within_a_turn_shares_the_turn(what: str, on_each_system: dict[str, str]) -> None:
    ended = run_ranks("turns", ranks(f"has_a_{what}", f"has_a_{what}"), on_each_system)
    assert ended.statuses == [0, 0], ended
    assert all(output.count(f"inside of a {what}") == (2 if what == "thread" else 1) for output in ended.outputs), ended
    assert most_at_once(ended) == 1


@distributed
def test_turns_work_with_a_temporary_directory_per_rank(tmp_path: Path) -> None:
    actions = ranks("makes_tmpdir_and_loads", "makes_tmpdir_and_loads")
    ended = run_ranks("turns", actions, {})
    assert ended.statuses == [0, 0] and most_at_once(ended) == 1, ended


@distributed
@pytest.mark.parametrize(("version", "turns"), [("2.2.5", False), ("2.2.5", True), ("2.6.6", True)])
def test_variable_wraps_load_from_checkpoint_in_turns(version, turns, environment, tmp_path):
    variables = {**environment, "PYTHONPATH": environment_of(Variant("lightning", version))["PYTHONPATH"]}
    if turns:
        variables["LIGHTNING_PATCHES_RANK_BY_RANK"] = "1"
    if version == "2.2.5":
        variables["IMPORT_FIRST"] = "1"
    ended = run_ranks("turns_of_loading", 2 * [[] if turns else ["together"]], variables)
    assert ended.statuses == [0, 0], ended
    assert most_at_once(ended) == (1 if turns else 2), ended


def train(action: str, version: str, variable: bool, directory: Path) -> Ended:
    """Run both ranks of a Trainer with Lightning's launcher, which makes rank 1 a child of rank 0."""
    variables = environment_of(Variant("lightning", version))
    if variable:
        variables["LIGHTNING_PATCHES_RANK_BY_RANK"] = "1"
    command = [sys.executable, str(PROGRAMS / "turns_trainer.py"), action]
    began = time.monotonic()
    status, output = execute(command, variables, 200, directory, patience=60)
    return Ended([status], [output], time.monotonic() - began)


@distributed
@pytest.mark.parametrize(("version", "variable"), [("2.2.5", False), ("2.6.6", True)])
def test_ranks_of_a_trainer_take_turns(version: str, variable: bool, tmp_path: Path) -> None:
    ended = train("waits", version, variable, tmp_path)
    assert ended.statuses == [0] and ended.outputs[0].count("done") == 2, ended
    assert ended.outputs[0].count("inside from") == 2 and most_at_once(ended) == 1, ended


@distributed
@pytest.mark.parametrize(("version", "variable"), [("2.6.6", False), ("2.2.5", True)])
def test_first_rank_of_a_trainer_that_dies_inside_ends_the_other(version: str, variable: bool, tmp_path: Path) -> None:
    ended = train("dies", version, variable, tmp_path)
    assert ended.statuses == [-9] and ended.outputs[0].count("inside from") == 1, ended
    error = r"RankByRankError: \[rank 1\] rank 0 \(host \S+, pid \d+\) died during its turn: "
    assert re.search(error, ended.outputs[0]) and "done" not in ended.outputs[0], ended
    assert ended.seconds < 60, ended  # neither timed out nor killed


@distributed
def test_child_started_before_the_turn_waits_and_child_started_within_does_not(environment):
    ended = run_ranks("turns_of_a_parent", [[], None], environment, timeout=100)
    assert ended.outputs[0].splitlines() == 3 * ["child", "rank 0 leaves", "rank 1"], ended


def test_single_process_takes_no_turn(tmp_path: Path) -> None:
    program = "from lightning_patches.ranks.rank_by_rank import rank_by_rank\nwith rank_by_rank(): print('inside')"
    done = python(program, TMPDIR=str(tmp_path))
    assert done.stdout == "inside\n" and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        {"at_once": 0},
        {"at_once": 1.5},
        {"at_once": "2"},
        {"at_once": True},
        {"timeout": float("nan")},
        {"timeout": -1},
        {"timeout": None},
    ],
)
def test_invalid_arguments_raise_value_error(arguments: dict[str, Any]) -> None:
    from lightning_patches.ranks.rank_by_rank import rank_by_rank

    with pytest.raises(ValueError, match="must be a"), rank_by_rank(**arguments):
        pass


@pytest.mark.parametrize("value", ["all", "-1", "²"])
def test_invalid_variable_is_reported(value: str) -> None:
    program = "from lightning_patches.ranks.rank_by_rank import install_from_environment\ninstall_from_environment()"
    done = python(program, LIGHTNING_PATCHES_RANK_BY_RANK=value)
    assert done.returncode == 0 and f"RANK_BY_RANK={value} is invalid. Use the number of ranks" in done.stderr, done
