"""``scripts/test``, which a newcomer runs first. The test of ``scripts/demo`` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.support.scripts import load
from tests.support.variants import ROOT


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
