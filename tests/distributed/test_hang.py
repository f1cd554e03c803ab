"""The hang watch with real ranks that do not arrive."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.ranks import _processes
from lightning_patches.ranks.hang import _collectives, _identity, _report, _settings, _stacks, watch_hangs
from tests.distributed.processes import PROGRAMS, run_ranks
from tests.support import run
from tests.support.nodes import two_nodes
from tests.support.run import ROOT, execute
from tests.support.variants import Variant, environment_of

distributed = pytest.mark.distributed


def watched(timeout: str) -> dict[str, str]:
    return {"LIGHTNING_PATCHES_HANG_TIMEOUT": timeout}


def actions(*items: str) -> list:
    return [None if item == "-" else item.split() for item in items]


@distributed
@pytest.mark.parametrize("place", ["before", "after"])
def test_missing_rank_on_another_node_is_reported(place: str) -> None:
    """The user's secret works before torch's store exists; afterwards the store transports one."""
    with two_nodes() as nodes:
        ranks = actions(f"arrives {place} last watched", f"sleeps {place}")
        secret = {"LIGHTNING_PATCHES_HANG_SECRET": "0123456789abcdef"} if place == "before" else {}
        ended = run_ranks("hang_ranks", ranks, {**watched("4:abort"), **secret}, nodes=nodes)
        report = ended.outputs[0]
        assert "1 of 2 ranks have arrived" in report, ended
        assert f"arrived: rank 0 (host {nodes[0].namespace}" in report, ended
        assert f"missing: rank 1 (host {nodes[1].namespace}" in report and "time.sleep(100)" in report, ended
        assert ended.statuses == [124, 124], ended


@distributed
def test_missing_ranks_are_reported_before_the_process_group_exists() -> None:
    ended = run_ranks(
        "hang_ranks", actions("arrives before watched", "sleeps before", "raises before"), watched("3:abort")
    )
    report = ended.outputs[0]
    assert "in init_process_group (there is no process group yet). 1 of 3 ranks have arrived" in report, ended
    assert "arrived: rank 0 (host" in report
    assert "missing: rank 1 (host" in report and "time.sleep(100)" in report
    assert "missing: rank 2" in report and "ValueError: no such file: train.csv" in report
    assert "rank 2 ended with an error: ValueError: no such file: train.csv: the job cannot finish" in report
    assert ended.statuses == [124, 124, 1], ended


@distributed
def test_killed_rank_is_reported_at_once_and_ends_the_job() -> None:
    ended = run_ranks("hang_ranks", actions("works_on before", "dies before", "sleeps before"), watched("30:abort"))
    report = ended.outputs[0]
    assert "rank 1 died (it was killed by signal 9 (SIGKILL)): the job cannot finish" in report, ended
    assert "All ranks are ended in 10 s." in report and "rank 1 has died: all ranks are ended now" in report, ended
    assert ended.statuses == [124, -9, 124] and ended.seconds < 90, ended


@distributed
def test_missing_ranks_are_reported_after_the_process_group_exists() -> None:
    ranks = actions("arrives after last watched", "stops after", "sleeps after", "holds_the_gil after")
    ended = run_ranks("hang_ranks", ranks, watched("3:abort"))
    report = ended.outputs[0]
    assert "in barrier, collective number 2. 1 of 4 ranks have arrived" in report, ended
    assert "barrier number 2 of the default group" in report
    assert (
        "rank 1 does not answer (the process is stopped by a signal)" in report and "rank 3 does not answer" in report
    )
    assert "rank 2 has not moved for" in report and "; rank 0 in barrier 2." in report
    assert "missing: rank 1" in report and "does not answer: the process is stopped by a signal" in report
    assert "Last seen at hang_ranks.py:" in report
    assert "missing: rank 2" in report and "time.sleep(100)" in report
    assert "blocks all other Python threads:" in report and " in act\n" in report.partition("missing: rank 3")[2]
    assert "hang/_watch.py" not in report
    # Rank zero sends the order to end, and kills ranks that don't answer. Gloo may be faster than the order.
    assert ended.statuses[1] == ended.statuses[3] == -9, ended
    assert ended.statuses[0] in (124, 1) and ended.statuses[2] == 124, ended


@distributed
def test_without_abort_ranks_keep_waiting() -> None:
    ended = run_ranks("hang_ranks", actions("arrives before", "sleeps_a_while after"), watched("2"))
    assert ended.statuses == [0, 0], ended
    assert "missing: rank 1" in ended.outputs[0] and "The ranks keep waiting" in ended.outputs[0], ended
    assert "is only slow" in ended.outputs[0]
    assert ended.outputs[1] == "done\n"


@distributed
def test_working_rank_is_not_ended() -> None:
    ended = run_ranks("hang_ranks", actions("arrives after last", "works_a_while after"), watched("2.5:abort"))
    assert ended.statuses == [0, 0], ended
    assert "missing: rank 1" in ended.outputs[0] and "is busy at hang_ranks.py:" in ended.outputs[0], ended
    assert "The job is not ended, since rank 1 works." in ended.outputs[0]


@distributed
def test_rank_that_never_starts_is_reported() -> None:
    ended = run_ranks("hang_ranks", actions("arrives before", "-"), watched("2:abort"))
    assert ended.statuses == [124, None], ended
    assert "missing: rank 1 has not contacted rank zero, and no process of host" in ended.outputs[0], ended


@distributed
def test_child_of_a_rank_is_not_a_rank_and_a_healthy_job_prints_nothing() -> None:
    ended = run_ranks("hang_ranks", actions("nests before", "is_known before"), watched("60"))
    assert ended.statuses == [0, 0], ended
    assert ended.outputs == ["lightning_patches: 2 of 2 ranks are watched for hangs.\ndone\n", "done\n"]


@distributed
def test_nothing_is_printed_without_the_variable() -> None:
    """Without the watch, a hanging job prints nothing."""
    ended = run_ranks("hang_ranks", actions("arrives before", "-"), {}, timeout=12)
    assert ended.statuses == [None, None]
    assert ended.outputs[0] == ""


@distributed
@pytest.mark.parametrize(
    ("version", "strategy", "accelerator"),
    [("2.2.5", "ddp", "cpu"), ("2.6.6", "ddp_spawn", "cpu"), ("2.6.6", "ddp", "gpu")],
)
def test_hang_of_a_trainer_is_reported(version: str, strategy: str, accelerator: str, tmp_path: Path) -> None:
    """A report while the second rank still imports Lightning ends nothing."""
    variant = environment_of(
        Variant("lightning", version), simulated_cuda=accelerator == "gpu"
    )  # its backend is "nccl"
    variables = {**variant, **watched("3:abort")}
    command = [sys.executable, str(PROGRAMS / "hang_trainer.py"), "sleeps", strategy, accelerator]
    status, output = execute(command, variables, timeout=300, cwd=str(tmp_path))
    assert status not in (0, None), output
    assert "Ranks have waited" in output and "1 of 2 ranks have arrived" in output, output
    assert "arrived: rank 0" in output and "in backward, collective number" in output, output
    assert "missing: rank 1" in output and "in training_step: " in output and "time.sleep(100)" in output, output


@distributed
def test_healthy_trainer_prints_nothing(tmp_path: Path) -> None:
    variables = {**environment_of(Variant("lightning", "2.2.5")), **watched("60")}
    command = [sys.executable, str(PROGRAMS / "hang_trainer.py"), "works", "ddp", "cpu"]
    status, output = execute(command, variables, timeout=300, cwd=str(tmp_path))
    assert status == 0 and "trained" in output, output
    assert "waited" not in output, output


def python(program: str, **variables: str) -> str:
    done = run.python(textwrap.dedent(program), **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "text", ["soon", "-3", "inf", "nan", "30:stop", "300:abort:x", "3d", "1e400", "300,abort", "0s"]
)
def test_invalid_value_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match=f"TIMEOUT={re.escape(text)} is invalid, so ranks are not watched. Use"):
        _settings.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("300", (300, False)),
        (" 300 ", (300, False)),
        ("300s", (300, False)),
        ("5m", (300, False)),
        ("5min:abort", (300, True)),
        ("1.5h", (5400, False)),
        ("300:ABORT", (300, True)),
        ("300: abort", (300, True)),
        ("0", None),
        ("off", None),
        ("False", None),
        ("", None),
    ],
)
def test_timeout_value_is_parsed(text: str, expected: object) -> None:
    assert _settings.parse(text) == expected


@pytest.mark.parametrize("port", ["99999", "0", "abc", "-1"])
def test_ignored_variable_is_reported(port: str) -> None:
    program = """
        import threading
        from lightning_patches.ranks import hang
        hang.start_from_environment()
        print(threading.active_count())
    """
    output = python(
        program,
        LIGHTNING_PATCHES_HANG_TIMEOUT="300",
        LIGHTNING_PATCHES_HANG_PORT=port,
        LIGHTNING_PATCHES_HANG_SECRET="short",
    )
    assert output.startswith("2\n") and f"HANG_PORT={port} is not a port and is ignored. Use a number" in output
    assert "HANG_SECRET is shorter than 16 characters and is ignored." in output
    output = python(program, LIGHTNING_PATCHES_HANG_TIMEOUT="30:stop")
    assert output.startswith("1\n") and "LIGHTNING_PATCHES_HANG_TIMEOUT=30:stop is invalid" in output


def test_nothing_is_imported_when_the_variable_is_unset() -> None:
    program = """
        import sys
        from lightning_patches.activation import startup
        startup._activate_now(startup._parse("none"))
        startup._activate_now(startup._parse("1"))
        ours = ("lightning_patches.ranks.hang", "lightning_patches.ranks.rank_by_rank")
        print([name for name in sys.modules if name.startswith(ours)])
    """
    assert python(program, _LIGHTNING_PATCHES_IMPORT_ONLY="1") == "[]\n"


@pytest.fixture
def launched(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> _identity.Identity | None:
    """The rank's identity under a launcher that sets only these variables."""
    for name in list(os.environ):
        if name.startswith(("SLURM", "MASTER", "LOCAL_")) or name in ("RANK", "WORLD_SIZE", "NODE_RANK", "GROUP_RANK"):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return _identity.find([])


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"RANK": "3", "LOCAL_RANK": "1", "GROUP_RANK": "1", "WORLD_SIZE": "4", "MASTER_PORT": "29500"}, (3, 1, 1, 4)),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "29500"}, (1, 1, 0, 2)),
        ({"LOCAL_RANK": "1", "NODE_RANK": "1", "WORLD_SIZE": "4", "MASTER_PORT": "29500"}, (None, 1, 1, 4)),
        ({"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NODEID": "2", "SLURM_NTASKS": "6"}, (5, 1, 2, 6)),
        ({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "29500"}, None),
    ],
)
def test_rank_and_world_size_are_read_from_the_launcher(launched: _identity.Identity | None, expected: object) -> None:
    assert (launched and (launched.rank, launched.local_rank, launched.node, launched.world_size)) == expected


@pytest.mark.parametrize(
    ("variables", "one_node", "address"),
    [
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_NNODES": "2", "SLURM_NODELIST": "n[4-5]"}, False, "n4"),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_NNODES": "1", "SLURM_NODELIST": "n4"}, True, "n4"),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "1", "MASTER_ADDR": "10.0.0.1"}, False, "10.0.0.1"),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "1", "MASTER_ADDR": "::1"}, True, "::1"),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "1", "MASTER_ADDR": "vm"},
            True,
            "vm",
        ),
    ],
)
def test_one_node_and_its_address_are_read_from_the_launcher(launched, one_node, address):
    """With srun on several nodes, only Lightning sets MASTER_ADDR."""
    assert launched is not None and (launched.one_node, launched.address) == (one_node, address)


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ("gpu[03-05,9],cpu1", "gpu03"),
        ("node-[0-1]", "node-0"),
        ("cpu1,gpu2", "cpu1"),
        ("a7", "a7"),
        ("r[1-2]n.x", "r1n.x"),
        ("", ""),
    ],
)
def test_first_node_of_a_slurm_list_is_parsed(names: str, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_STEP_NODELIST", raising=False)
    monkeypatch.setenv("SLURM_NODELIST", names)
    assert _identity._first_node() == first


MAKES_TYPES = """
import sys
from collections import namedtuple
{imports}
from lightning_patches.ranks.hang import _stacks

def make():
    places = set()
    sys.setprofile(lambda frame, event, _: places.add(_stacks._place(frame)))
    namedtuple("Point", "x y")
    {makes}
    sys.setprofile(None)
    print(*sorted(places), sep=", ")

make()
"""


def test_generated_code_is_not_user_code(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        MAKES_TYPES.format(imports="import dataclasses", makes="dataclasses.make_dataclass('Pair', ['a', 'b'])")
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=200, check=True
    )
    assert done.stdout == "train.py:10 in make, train.py:11 in make, train.py:12 in make\n"


@pytest.mark.parametrize("path", ["<string>", "<stdin>", "<ipython-input-3-0123456789ab>", "<command-42>"])
def test_code_without_a_file_is_user_code(path: str) -> None:
    found = {"__name__": "__main__", "place": lambda: _stacks._place(sys._getframe(1))}
    exec(compile("def train():\n    return place()\nat = train()", path, "exec"), found)
    assert found["at"] == f"{path}:2 in train"
    assert python(MAKES_TYPES.format(imports="", makes="")) == "<string>:10 in make, <string>:12 in make\n"


@pytest.mark.parametrize("timeout", ["x", "300", None, True, 0, -1, float("nan"), float("inf")])
def test_invalid_timeout_raises_value_error(timeout: Any) -> None:
    with pytest.raises(ValueError, match=f"timeout must be a positive number of seconds, not {timeout!r}"):
        watch_hangs(timeout)


def test_outside_text_is_printed_without_control_characters() -> None:
    state = _report.State("rank 1", 1, "host \x1b[2Jx", _report.STILL, text="is not there;", detail="File \x07\r\n")
    state.place, state.frames = "a\nlightning_patches: rank 0 died.py:1 in f", ["\x9b31m\u202e.py:1 in f"]
    report = _report.Report([state], _report.Call("barrier", 3), 4.0)
    for text in (report.text(), report.in_short(), report.again(), report.verdict()):
        assert all(c.isprintable() or c == "\n" for c in text)
        assert "\nlightning_patches" not in text


def test_stack_sample_takes_at_most_two_milliseconds() -> None:
    """At usual timeouts a sample is taken every five seconds: 2 ms are 0.04 % of the time."""
    stop = threading.Event()

    def deep(depth: int) -> None:
        stop.wait() if depth == 0 else deep(depth - 1)

    threads = [threading.Thread(target=deep, args=(60,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    sampler = _stacks.Sampler(300, lambda: _processes.work(os.getpid()))
    sampler.sample()
    times = []
    for _ in range(50):
        began = time.thread_time()  # excludes the work of other processes
        sampler.sample()
        times.append(time.thread_time() - began)
    stop.set()
    for thread in threads:
        thread.join()
    assert sorted(times)[25] < 0.002


def test_gpu_usage_is_read_from_nvml(tmp_path: Path) -> None:
    """Uses a stand-in for NVIDIA's library, which most test machines lack."""
    source = tmp_path / "nvml.c"
    source.write_text(
        """
        #include <string.h>
        struct usage { unsigned gpu, memory; };
        struct memory { unsigned long long total, free, used; };
        int nvmlInit_v2(void) { return 0; }
        int nvmlShutdown(void) { return 0; }
        int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = 0; return index ? 15 : 0; }
        int nvmlDeviceGetName(void *device, char *name, unsigned length) { strcpy(name, "NVIDIA H100"); return 0; }
        int nvmlDeviceGetUtilizationRates(void *device, struct usage *usage) { usage->gpu = 100; return 0; }
        int nvmlDeviceGetMemoryInfo(void *device, struct memory *m) { m->total = 80ULL << 30; m->used = 1ULL << 30;
            return 0; }
        """
    )
    library = tmp_path / "libnvidia-ml.so.1"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler")
    program = "import json; from lightning_patches.ranks.hang import _gpus; print(json.dumps(_gpus.describe()))"
    lines = json.loads(python(program, LD_LIBRARY_PATH=str(tmp_path)))
    assert lines == ["GPU 0 NVIDIA H100, 100 % busy, 1.0 of 80.0 GiB in use", "GPU 1 is lost: NVML error 15"]


def test_last_collective_is_read_from_the_nccl_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses a stand-in for torch's NCCL recorder. The tests above use the real one for gloo."""
    done = {"profiling_name": "nccl:broadcast", "collective_seq_id": 1, "state": "completed", "retired": True}
    begun = {"profiling_name": "nccl:all_reduce", "collective_seq_id": 2, "state": "started", "retired": False}
    common = {"process_group": ["0", "default_pg"], "input_sizes": [[3]]}
    entries = [{**done, **common}]
    recorder = types.SimpleNamespace(_dump_nccl_trace_json=lambda: json.dumps({"entries": entries}).encode())
    monkeypatch.setitem(sys.modules, "torch._C._distributed_c10d", recorder)
    assert str(_collectives.last()).startswith("broadcast number 1 of the default group, ")
    entries.append({**begun, **common})
    assert str(_collectives.last()) == "all_reduce number 2 of the default group, input sizes [[3]], not completed"
