"""``scripts/demo`` and ``scripts/test``: the two commands that a newcomer runs first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.scripts import load
from tests.support.variants import ROOT

BACKEND = "RuntimeError: No backend type associated with device type cpu\n"
TRAINED = "trained on cuda:0\ntrained on cuda:1\n"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    return load("demo")


class TestDemo:
    """The runs are replaced by their outputs."""

    OUTPUTS = {
        19813: (BACKEND, TRAINED),
        19373: ("Expected a 'cuda' device type for generator but found 'cpu'", TRAINED),
        21056: [f"epoch 0 had {seen} of 32 batches\nlearning rate 0.2 was found, {rate} was used\n"
                for seen, rate in ((12, 0.1), (32, 0.2))],
        20293: [f"gradient norm on each process: 0.25 {second}\n" for second in ("0.5", "0.25")],
        20577: ("rank 0 has its data", "rank 1 has not moved for 5 s, at disk.py:3 in read; rank 0"),
    }  # fmt: skip

    @pytest.fixture
    def outputs(self, demo: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
        """Set the outputs of a report's consecutive runs, each on stock and with the patches."""

        def use(*pairs: tuple[str, str]) -> None:
            left = list(pairs)

            def run(report: Any, timeout: float) -> None:
                for patched, text in enumerate(left.pop(0)):
                    demo.output_of(report, bool(patched)).write_text(text)

            monkeypatch.setattr(demo, "OUTPUT", tmp_path)
            monkeypatch.setattr(demo, "run", run)

        return use

    def test_each_report_has_a_program_and_shows_its_bug_and_its_fix(self, demo, outputs, capsys):
        assert {report.program for report in demo.REPORTS} == {path.name for path in demo.PROGRAMS.glob("*.py")}
        for report in demo.REPORTS:
            outputs(self.OUTPUTS[report.number])
            assert demo.show(report)
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= 100
        assert (
            "19813  lr_find, then fit with DDP                                 Lightning 2.3.3\n"
            "       without: No backend type associated with device type cpu\n"
            "       with:    trains on both GPUs (simulated)\n"
        ) in shown
        assert (
            "       with:    epoch 0 had 32 of 32 batches\n                learning rate 0.2 was found, 0.2 was used\n"
        ) in shown
        assert "with:    rank 1 has not moved for 5 s, at disk.py:3 in read\n" in shown


class TestTest:
    @pytest.mark.parametrize("workers", [(), ("--numprocesses=1",)], ids=["alone", "xdist"])
    def test_tests_that_need_simulated_gpus_are_skipped_and_counted_when_there_is_no_compiler(self, tmp_path, workers):
        tests = ("tests/simulated_cuda/test_rehearsal.py", "tests/unit/test_names.py")
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *workers, *tests]
        variables = {**os.environ, "CXX": "/nowhere/c++", "LIGHTNING_PATCHES_TEST_CACHE": str(tmp_path)}
        done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done
        assert re.search(r"= \d+ passed, 3 skipped in ", done.stdout), done
        assert done.stdout.splitlines()[-1] == (
            "Skipped tests: 3 in tests/simulated_cuda. The simulated GPUs need a C++ compiler. "
            "Install /nowhere/c++, or name another one in CXX."
        )

    @pytest.mark.parametrize(
        ("unsteady", "broken", "status", "runs"), [(2, 0, 0, 2), (1, 1, 1, 2), (0, 1, 1, 2), (0, 11, 1, 1)]
    )
    def test_few_failures_are_run_once_more_alone(self, unsteady, broken, status, runs, tmp_path, monkeypatch, capfd):
        """Runs under xdist and in groups, like the suite. Tests that fail twice have failed; the others are listed."""
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
        printed = capfd.readouterr().out.rpartition("worth a look:")[2] if unsteady else ""
        assert printed.count("test_unsteady") == unsteady and "test_broken" not in printed
