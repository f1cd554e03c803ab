"""``scripts/demo`` and ``scripts/test``: what a newcomer starts first."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.arms import ROOT
from tests.support.scripts import load

RESET = "RuntimeError: [enforce fail] Connection reset by peer\n"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    return load("demo")


@pytest.mark.parametrize("script", ["demo", "test"])
def test_help_fits_a_terminal(script: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), "--help"]
    done = subprocess.run(command, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80, done


class TestDemo:
    @pytest.mark.parametrize(
        ("status", "output", "by_machine"),
        [
            (1, RESET, True),
            (124, "", True),
            (-9, "", True),
            (1, "OSError: [Errno 12] Cannot allocate memory\n", True),
            (1, "RuntimeError: No backend type associated with device type cpu\n", False),
            (1, "ValueError: something else\n", False),
            (0, RESET, False),
        ],
    )
    def test_what_the_machine_ends(self, demo: ModuleType, status: int, output: str, by_machine: bool) -> None:
        assert demo.Done(status, output, 1.0).by_machine is by_machine

    @pytest.mark.parametrize("again", ["right", "ended again", "wrong"])
    def test_it_is_run_once_more(self, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, again: str) -> None:
        """A reset connection in the patched run: told after a second run, "not told" after a second reset; and an
        error of the program itself stays a broken promise."""
        report = next(report for report in demo.REPORTS if report.number == 19813)
        stock, patched = (demo.Run("lightning", "2.3.3", report.program, arm) for arm in demo.ARMS)
        right = "trained on cuda:0\ntrained on cuda:1\n"
        bug = "RuntimeError: No backend type associated with device type cpu\n"
        done = {stock: demo.Done(1, bug, 1.0), patched: demo.Done(1, RESET, 1.0)}
        second = {"right": (0, right), "ended again": (1, RESET), "wrong": (1, bug)}[again]
        ran = []

        def execute(run: object, gpus: bool, timeout: float) -> object:
            ran.append(run)
            return demo.Done(*second, 1.0)

        monkeypatch.setattr(demo, "execute", execute)
        demo.run_again(done, {stock: True, patched: True}, [report], 10)
        rows, suspects, untold = demo.summary([("lightning", "2.3.3")], [report], done)
        assert ran == [patched]
        expected = {"right": ("ok", 0, 0), "ended again": ("not told", 0, 1), "wrong": ("NOT AS PROMISED", 2, 0)}
        assert (rows[0][-1], len(suspects), untold) == expected[again]

    def test_a_run_is_told_as_it_begins_with_what_is_left(
        self, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """And not only when it has ended, minutes later; no more are begun than run at a time."""
        report = next(report for report in demo.REPORTS if report.number == 19813)
        runs = {demo.Run("lightning", f"2.1.{number}", report.program, "stock"): False for number in range(4)}

        class Pool:
            def __init__(self, *arguments: object, **options: object) -> None:
                pass

            def __enter__(self) -> Pool:
                return self

            def __exit__(self, *error: object) -> None:
                pass

            def submit(self, execute: object, run: object, gpus: bool, timeout: float) -> Future[object]:
                future: Future[object] = Future()
                future.set_result(demo.Done(0, "", 1.0))
                return future

        monkeypatch.setattr(demo, "ProcessPoolExecutor", Pool)
        options = argparse.Namespace(jobs=2, timeout=10, keep_going=True)
        assert {*demo.run_all(runs, [report], options)} == {*runs}
        lines = capsys.readouterr().out.splitlines()
        told = [line.split()[0] for line in lines if " begins" in line]
        assert " ".join(lines).count(" s  ") == 4 and told == ["[", "[", "[", "["]
        first, third = (next(line for line in lines if f"[ {number}/4]" in line) for number in (1, 3))
        assert first.endswith("begins") and re.search(r"begins, about \d+\.\d minutes left$", third)
        assert lines.index(third) >= 3, "the third begins when one of the first two has ended"


class TestTest:
    def test_the_compiler_is_asked_for_only_when_it_is_needed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        script = load("test")
        monkeypatch.setenv("CXX", "no-such-compiler")
        assert script.why_not(["tests/unit", "-q"]) == ""
        for arguments in ([], ["-x"], ["tests/simulated_cuda"], ["tests/patches/test_align_devices.py"]):
            assert "Install g++" in script.why_not(arguments)

    def test_what_is_run_without_arguments(self) -> None:
        chosen = load("test").chosen
        assert chosen(False, None) == ["--soon"] and chosen(True, None) == []
        turn, until = chosen(False, 30)
        assert re.fullmatch(r"--rest=\d+", turn)
        assert 1790 < float(until.partition("=")[2]) - time.time() <= 1800

    def test_without_a_compiler_nothing_is_downloaded(self, tmp_path: Path) -> None:
        command = [sys.executable, str(ROOT / "scripts" / "test")]
        environment = {**os.environ, "CXX": "no-such-compiler"}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert (done.returncode, done.stdout) == (2, "")
        assert "no-such-compiler" in done.stderr

    def test_ctrl_c_ends_what_it_started(self, tmp_path: Path) -> None:
        """Also a grandchild that takes its time; and no traceback of ours."""
        child = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(600)"
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); import _environment\n"
            "try:\n"
            f"    _environment.run(['sh', '-c', 'exec \"$@\" & wait', 'sh', sys.executable, '-c', {child!r}])\n"
            "except KeyboardInterrupt:\n"
            "    sys.exit(130)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell that started the tests in the background has SIGINT ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert process.stdout is not None and process.stderr is not None
        grandchild = int(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(200) == 130
        assert "Traceback" not in process.stderr.read().partition("KeyboardInterrupt")[2]
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and Path(f"/proc/{grandchild}").exists():
            time.sleep(0.1)
        assert not Path(f"/proc/{grandchild}").exists()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("unsteady", "broken", "status", "runs"), [(2, 0, 0, 2), (1, 1, 1, 2), (0, 1, 1, 2), (0, 11, 1, 1)]
    )
    def test_few_failures_are_run_once_more_alone(
        self,
        unsteady: int,
        broken: int,
        status: int,
        runs: int,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """Under xdist and in groups, as the suite is run: what fails twice has failed, the rest is named."""
        script = load("test")
        monkeypatch.setattr(script._environment, "ROOT", tmp_path)
        (tmp_path / "test_some.py").write_text(
            "import pathlib, pytest\n"
            f"@pytest.mark.parametrize('number', range({unsteady}))\n"
            "@pytest.mark.xdist_group('some')\n"
            "def test_unsteady(number):\n"
            "    seen = pathlib.Path(f'seen {number}')\n"
            "    was_seen = seen.exists()\n"
            "    seen.touch()\n"
            "    assert was_seen\n"
            f"@pytest.mark.parametrize('number', range({broken}))\n"
            "def test_broken(number):\n"
            "    assert False\n"
            "def test_right():\n"
            "    pass\n"
        )
        ran = []

        def run(arguments: list[str]) -> int:
            ran.append(arguments)
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "_LIGHTNING"))}
            command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", *arguments]
            return subprocess.run(command, cwd=tmp_path, env=environment, timeout=120, check=False).returncode

        assert run(["--numprocesses=2", "--dist=loadgroup"]) == 1
        assert script.again(run) == status and len(ran) == runs
        told = capfd.readouterr().out.rpartition("worth a look:")[2] if unsteady else ""
        assert told.count("test_unsteady") == unsteady and "test_broken" not in told
