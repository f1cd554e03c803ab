"""``scripts/demo`` and ``scripts/test``: what a newcomer starts first."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.scripts import load
from tests.support.variants import ROOT

RESET = "RuntimeError: [enforce fail] Connection reset by peer\n"
BACKEND = "RuntimeError: No backend type associated with device type cpu\n"
TRAINED = "trained on cuda:0\ntrained on cuda:1\n"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    return load("demo")


def ended(demo: ModuleType, monkeypatch: pytest.MonkeyPatch, how: Callable[[Any], tuple[int, str]]) -> None:
    """Let each run of the demo end so, without running it."""
    monkeypatch.setattr(demo, "execute", lambda run, timeout, patience=1: demo.Done(*how(run)))
    monkeypatch.setattr(demo, "ProcessPoolExecutor", lambda jobs, *context, **options: ThreadPoolExecutor(jobs))


def wheel(directory: Path, name: str, version: str, requires: str = "") -> None:
    """Write a wheel that holds nothing."""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        folder = f"{name}-{version}.dist-info"
        archive.writestr(f"{folder}/METADATA", metadata)
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")


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
        assert demo.Done(status, output).by_machine is by_machine

    @pytest.mark.parametrize("again", ["right", "ended again", "wrong"])
    def test_a_run_that_the_machine_ended_is_run_once_more(
        self, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], again: str
    ) -> None:
        """A reset connection in the patched run: told after a second run, "not told" after a second reset; and an
        error of the program itself stays a broken promise."""
        (case,) = demo.chosen({"19813"}, False)
        stock, patched = case.runs
        second = {"right": (0, TRAINED), "ended again": (1, RESET), "wrong": (1, BACKEND)}[again]
        come = {stock: [(1, BACKEND)], patched: [(1, RESET), second]}
        ended(demo, monkeypatch, lambda run: come[run].pop(0))
        text, status = demo.closing([case], demo.run_all([case], 2, 10))
        assert not any(come.values())
        expected = {
            "right": ("1 bug shown, 1 gone", 0),
            "ended again": ("1 bug shown, 0 gone\n1 not told", 3),
            "wrong": ("1 bug shown, 0 gone\n1 not as promised", 1),
        }
        assert (text.partition(":")[0], status) == expected[again]
        told = capsys.readouterr().out
        assert ("see build/demo/2.3.3/lr_find_then_fit.*.txt" in told) is (again != "right")

    def test_the_five_reports_are_shown_in_words(
        self, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Each on one release, and in 100 columns."""
        cases = demo.chosen(set(), False)
        assert [case.report.number for case in cases] == [19813, 19373, 20293, 20276, 20577]
        assert all(case.affected and case.available for case in cases)
        come = {
            19813: [(1, BACKEND), (0, TRAINED)],
            19373: [(1, "Expected a 'cuda' device type for generator but found 'cpu'"), (0, TRAINED)],
            20293: [(0, f"gradient norm on each process: 0.25 {second}") for second in ("0.5", "0.25")],
            20276: [(1, "Expected all tensors to be on the same device, but found two"), (0, TRAINED)],
            20577: [(124, "rank 0 has its data"), (124, "rank 1 has not moved for 5 s, at disk.py:3 in read; rank 0")],
        }
        ended(
            demo,
            monkeypatch,
            lambda run: next(come[c.report.number][c.runs.index(run)] for c in cases if run in c.runs),
        )
        assert demo.closing(cases, demo.run_all(cases, 2, 10)) == ("5 bugs shown, 5 gone", 0)
        told = capsys.readouterr().out
        assert max(map(len, told.splitlines())) <= 100
        assert (
            "19813  lr_find, then fit with DDP                                 Lightning 2.3.3\n"
            '       without: ends in "No backend type associated with device type cpu"\n'
            "       with:    trains on both GPUs (simulated)\n"
        ) in told
        assert "their norms are 0.25 and 0.5" in told and "rank 1 stands still, at disk.py:3 in read\n" in told

    def test_a_release_without_the_bug_must_be_right_in_both_runs(self, demo: ModuleType) -> None:
        case = demo.Case(next(report for report in demo.REPORTS if report.number == 19813), "2.4.0")
        right, wrong = demo.Done(0, TRAINED), demo.Done(1, BACKEND)
        stock, patched = case.runs
        assert demo.closing([case], {stock: right, patched: right})[1] == 0
        assert demo.closing([case], {stock: wrong, patched: right})[1] == 1

    def test_which_cases_are_shown(self, demo: ModuleType) -> None:
        def cases(*only: str, everything: bool = False) -> list[tuple[int, str]]:
            return [(case.report.number, case.version) for case in demo.chosen({*only}, everything)]

        assert cases("19813") == [(19813, "2.3.3")]
        assert cases("19813", "2.2.5") == [(19813, "2.2.5")]
        assert {version for _, version in cases("21056")} == {*demo.RELEASES}
        assert len(cases(everything=True)) == len(demo.REPORTS) * len(demo.RELEASES)


class TestEnvironment:
    @pytest.mark.parametrize("cuda", [True, False])
    def test_a_build_for_cuda_is_refused_before_it_is_downloaded(self, cuda: bool, tmp_path: Path) -> None:
        environment = load("demo")._environment
        wheel(tmp_path, "torch", "2.13.0", "nvidia-cublas" if cuda else "")
        wheel(tmp_path, "nvidia_cublas", "13.0")
        offline = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tmp_path / "empty")]
        refused = pytest.raises(SystemExit, match="--torch-index URL.*\n.*the build for CUDA")
        with refused if cuda else contextlib.nullcontext():
            environment.refuse_cuda([*pip, environment.TORCH], {**os.environ, **offline})
        assert not (tmp_path / "empty").exists()

    def test_the_readme_gives_the_same_sizes(self) -> None:
        sizes = set(re.findall(r"[\d.]+ [GM]B", load("demo")._environment.TAKES))
        tried = (ROOT / "README.md").read_text().partition("## Try it")[2]
        assert set(re.findall(r"[\d.]+ [GM]B", tried)) == sizes
        assert "~/.cache/lightning-patches-tests" in tried


class TestTest:
    def test_the_compiler_is_asked_for_only_when_it_is_needed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        script = load("test")
        monkeypatch.setenv("CXX", "no-such-compiler")
        assert script.why_not(["tests/unit", "-q"]) == ""
        for arguments in ([], ["-x"], ["tests/simulated_cuda"], ["tests/patches/align_devices"]):
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
