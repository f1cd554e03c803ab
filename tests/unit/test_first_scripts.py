"""``scripts/demo`` and ``scripts/test``: the two commands that a newcomer runs first."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support import run as running
from tests.support.scripts import load
from tests.support.variants import ROOT, SIMULATED_CUDA_SITE

RESET = "RuntimeError: [enforce fail] Connection reset by peer\n"
BACKEND = "RuntimeError: No backend type associated with device type cpu\n"
TRAINED = "trained on cuda:0\ntrained on cuda:1\n"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    return load("demo")


def write_wheel(index: Path, name: str, version: str, requires: str = "") -> None:
    """Write an empty wheel into an index of packages, which is a folder."""
    folder = index / name.replace("_", "-")
    folder.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        information = f"{name}-{version}.dist-info"
        archive.writestr(f"{information}/METADATA", metadata)
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", "")
    links = "".join(f'<a href="{path.name}">{path.name}</a>' for path in sorted(folder.glob("*.whl")))
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")


@pytest.mark.parametrize("script", ["demo", "test"])
def test_help_fits_a_terminal(script: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), "--help"]
    done = subprocess.run(command, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80, done


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

    def test_outputs_without_the_bug_or_with_it_despite_the_patches_are_not_accepted(self, demo, outputs, capsys):
        for report in demo.REPORTS:
            bug, fix = self.OUTPUTS[report.number]
            for pair in ((fix, fix), (bug, bug)):
                outputs(pair, pair)
                assert not demo.show(report), (report.number, pair)
        assert capsys.readouterr().out.count("NOT AS EXPECTED, see build/demo/") == 2 * len(demo.REPORTS)

    def test_program_is_run_once_more_if_its_output_is_not_as_expected(self, demo, outputs):
        outputs((BACKEND, RESET), (BACKEND, TRAINED))
        assert demo.show(demo.REPORTS[0])

    def test_reports_that_need_simulated_gpus_are_skipped_and_named_when_there_is_no_compiler(self, tmp_path):
        command = [sys.executable, str(ROOT / "scripts" / "demo"), "--here", "--only=19813,19373"]
        variables = {**os.environ, "CXX": "/nowhere/c++", "LIGHTNING_PATCHES_TEST_CACHE": str(tmp_path)}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=200)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert done.stdout.splitlines()[-2:] == [
            "Skipped: 19813, 19373. The simulated GPUs need a C++ compiler. "
            "Install /nowhere/c++, or name another one in CXX.",
            "0 bugs shown and fixed",
        ]


class TestSimulatedGpus:
    @pytest.mark.parametrize(
        ("platform", "compiler", "files", "reason"),
        [
            ("linux", sys.executable, [], ""),
            ("darwin", sys.executable, [], "need Linux, and this is darwin"),
            ("linux", "/nowhere/c++", [], "need a C.. compiler. Install /nowhere/c"),
            ("linux", sys.executable, ["libtorch_cuda.so"], "need torch's build for CPUs.*--torch-index URL"),
        ],
        ids=["available", "not on Linux", "no compiler", "torch for CUDA"],
    )
    def test_obstacle_names_what_is_missing_and_what_to_do(
        self,
        platform: str,
        compiler: str,
        files: list[str],
        reason: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        (tmp_path / "lib").mkdir()
        for name in files:
            (tmp_path / "lib" / name).touch()
        (tmp_path / "version.py").write_text("__version__ = '2.13.0'\n")
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setenv("CXX", compiler)
        monkeypatch.setenv("LIGHTNING_PATCHES_TEST_CACHE", str(tmp_path / "cache"))
        library = runpy.run_path(str(SIMULATED_CUDA_SITE / "simulated_cuda" / "_library.py"))
        obstacle = library["obstacle"](tmp_path)
        assert re.search(f"The simulated GPUs {reason}", obstacle) if reason else obstacle == ""
        if compiler == "/nowhere/c++":
            library["library_path"](tmp_path).parent.mkdir()
            library["library_path"](tmp_path).touch()
            assert library["obstacle"](tmp_path) == "", "a library that is built already needs no compiler"


class TestEnvironment:
    """Real pip, on indexes in a folder."""

    FOR_CPUS = (("torch", "2.13.0+cpu"),)
    FOR_CUDA = (("torch", "2.13.0", "nvidia-cublas"), ("nvidia_cublas", "13.0"))
    FOR_ROCM = (("torch", "2.13.0+rocm7.1"),)

    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
        """Return pip's options for torch, if the indexes have these wheels. An index without wheels is unreachable."""
        module = load("demo")._environment
        monkeypatch.setattr(module, "CPU_INDEX", (tmp_path / "pytorch").as_uri())
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        variables.update(PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL=(tmp_path / "pip").as_uri())
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--target", str(tmp_path / "target")]

        def source(torch_index: str = "", **indexes: tuple[tuple[str, ...], ...]) -> list[str]:
            for index, wheels in indexes.items():
                for one in wheels:
                    write_wheel(tmp_path / index, *one)
            options: list[str] = module.torch_source(pip, variables, torch_index)
            assert not (tmp_path / "target").exists()
            return options

        return source

    @pytest.mark.parametrize(
        ("pip", "pytorch", "given", "is_for_cuda"),
        [
            (FOR_CPUS, FOR_CPUS, "", False),
            ((("torch", "2.13.0"),), FOR_CPUS, "", False),  # as on macOS
            (FOR_CUDA, FOR_CPUS, "pytorch", False),
            (FOR_ROCM, FOR_CPUS, "pytorch", False),
            ((), FOR_CPUS, "pytorch", False),
            (FOR_CUDA, FOR_CUDA, "", True),
            (FOR_CUDA, (), "", True),
        ],
    )
    def test_torch_for_cpus_comes_from_pips_index_or_else_from_pytorchs(
        self, source, tmp_path, capfd, pip, pytorch, given, is_for_cuda
    ):
        """If neither has one, a line has the size of the build for CUDA."""
        assert source(pip=pip, pytorch=pytorch) == (["--index-url", (tmp_path / given).as_uri()] if given else [])
        out, err = capfd.readouterr()
        line = r"No index here has torch for CPUs: pip downloads 0\.0 MB, .*--torch-index URL\.\n"
        assert re.fullmatch(line if is_for_cuda else "", out) and err == ""

    def test_given_index_is_the_only_one_tried(self, source, tmp_path, capfd):
        given = (tmp_path / "given").as_uri()
        assert source(given, pip=self.FOR_CPUS, pytorch=self.FOR_CPUS, given=self.FOR_CUDA) == ["--index-url", given]
        assert "No index here has torch for CPUs" in capfd.readouterr().out

    def test_set_up_ends_with_pips_messages_when_no_index_has_torch(self, source: Callable[..., list[str]]) -> None:
        with pytest.raises(SystemExit, match="(?s)No matching distribution .*torch can't be installed"):
            source()

    def test_download_size_includes_all_wheels(self, tmp_path: Path) -> None:
        size_of = load("demo")._environment.size_of
        packages = []
        for number, size in enumerate((1_500_000_000, 1_040_000_000)):
            file = tmp_path / f"{number}.whl"
            with open(file, "wb") as opened:
                opened.truncate(size)  # takes no space on disk
            packages.append({"download_info": {"url": file.as_uri()}})
        assert (size_of(packages), size_of(packages[1:]), size_of([])) == ("2.5 GB", "1.0 GB", "0.0 MB")
        assert size_of([{"download_info": {"url": (tmp_path / "gone.whl").as_uri()}}]) == "an unknown size"

    def test_set_up_shows_only_errors_of_pip(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Notices of a new pip, and pip's warnings, must not appear in the demo's output."""
        module = load("demo")._environment
        commands: list[list[str]] = []
        monkeypatch.setattr(module, "run", lambda command, **more: commands.append(command) or 0)
        monkeypatch.setattr(module, "torch_source", lambda pip, *others: commands.append(pip) or ["--index-url", "x"])
        python = module.set_up(tmp_path / "venv")
        assert (tmp_path / "venv" / "lightning-patches").read_text() == module.recipe(ROOT)
        assert module.set_up(tmp_path / "venv") == python and len(commands) == 4, "it is made once"
        for command in commands:
            assert {"-qq", "--disable-pip-version-check"} < set(command)
        assert [command[-1] for command in commands] == [module.PIP, "-qq", "x", f"{ROOT}[test]"]

    def test_readme_has_the_same_sizes(self) -> None:
        sizes = set(re.findall(r"[\d.]+ [GM]B", load("demo")._environment.TAKES))
        tried = (ROOT / "README.md").read_text().partition("## Try it")[2]
        assert set(re.findall(r"[\d.]+ [GM]B", tried)) == sizes
        assert "~/.cache/lightning-patches-tests" in tried


class TestTest:
    def test_script_without_arguments_runs_the_selection(self) -> None:
        chosen = load("test").chosen
        assert chosen(False, None) == ["--soon"] and chosen(True, None) == []
        turn, until = chosen(False, 30)
        assert re.fullmatch(r"--rest=\d+", turn)
        assert 1790 < float(until.partition("=")[2]) - time.time() <= 1800

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

    @pytest.mark.skipif(shutil.which("ps") is None, reason="no ps on this machine")
    def test_ctrl_c_ends_all_processes_of_a_script(self) -> None:
        """Also those in other sessions."""
        command = (
            "import subprocess, time\n"
            "print(subprocess.Popen(['sleep', '300'], start_new_session=True).pid, flush=True)\n"
            "time.sleep(300)"
        )
        program = (
            "import signal, sys, _environment\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # background jobs ignore it
            "_environment.run([sys.executable, '-c', sys.argv[1]])"
        )
        command = [sys.executable, "-c", program, command]
        process = subprocess.Popen(command, cwd=ROOT / "scripts", stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        group = int(process.stdout.readline())
        try:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == -signal.SIGINT
            assert not running.lives(group)
        finally:
            running.end(group)

    def test_process_groups_are_empty_on_a_system_without_ps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        assert load("demo")._environment.groups_below(os.getpid()) == set()

    @pytest.mark.slow
    def test_nothing_is_run_again_when_workers_collect_other_tests(self, tmp_path, monkeypatch):
        """As with a parameter whose text has an address. A failure of an earlier run must not count."""
        script = load("test")
        monkeypatch.setattr(script._environment, "ROOT", tmp_path)
        record = tmp_path / ".pytest_cache" / "v" / "cache" / "lastfailed"
        record.parent.mkdir(parents=True)
        record.write_text('{"gw1": true, "test_some.py::test_that_failed_before": true}')
        assert script.again(lambda arguments: pytest.fail("tests were run")) == 1

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
