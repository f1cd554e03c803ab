"""The program runs even if the package is broken, and nothing is loaded before Lightning is imported."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.activation.conftest import ENTRY_POINTS, HEAVY, PROGRAMS, Environment
from tests.support.run import variables
from tests.support.variants import ROOT

PLAIN = str(PROGRAMS / "plain.py")


def look(output: str) -> dict[str, Any]:
    found = json.loads(output.splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.fixture(params=["run", "autostart"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def launch(way: str, request: pytest.FixtureRequest) -> Any:
    """Run a command in an environment that autostart or `run` activates."""
    environment: Environment = request.getfixturevalue("autostarted" if way == "autostart" else "environment")

    def start(*command: str, **more: str) -> tuple[int, str]:
        if way == "run":
            return environment.run(environment.command("lightning-patches"), "run", *command, **more)
        return environment.run(*command, **{"LIGHTNING_PATCHES": "1", **more})

    return start


def test_nothing_is_imported_before_lightning(launch: Any) -> None:
    status, output = launch("python", PLAIN)
    found = look(output)
    assert (status, found["armed"], HEAVY & set(found["modules"])) == (0, True, set())


def test_disabled_autostart_imports_nothing(autostarted: Environment, environment: Environment) -> None:
    code = "import sys; print(sorted(sys.modules))"
    assert autostarted.run("python", "-c", code) == environment.run("python", "-c", code)


@pytest.mark.parametrize("option", ["-S", "-I", "-E", "-s", "-O"])
def test_program_runs_under_options_of_python(launch: Any, way: str, option: str) -> None:
    """Python has no site packages with -S, and ignores the variables with -I and -E: then nothing is activated."""
    status, output = launch("python", option, PLAIN)
    assert status == 0, output
    assert look(output)["armed"] is look(output)["loaded"] is (option not in ("-S", "-I", "-E"))


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    """A PYTHONPATH with an empty package called ``lightning``, which is quick to import."""
    (tmp_path / "path" / "lightning").mkdir(parents=True)
    (tmp_path / "path" / "lightning" / "__init__.py").write_text("")
    return str(tmp_path / "path")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&- >&-", "<&- 2>&-"])
def test_unwritable_stderr_keeps_the_exit_status(autostarted: Environment, stand_in: str, redirection: str) -> None:
    """The message about the broken toggle is lost, without any other effect."""
    code = "import sys, lightning; sys.exit(23)"
    line = f"exec python -c '{code}' {redirection}"
    status, output = autostarted.run("sh", "-c", line, PYTHONPATH=stand_in, LIGHTNING_PATCHES="nonsense")
    assert (status, output) == (23, "")


@pytest.mark.parametrize("way", ["import", "import afterwards", "run", "autostart"])
@pytest.mark.parametrize("toggle", ["1", "default,-19813"])
@pytest.mark.parametrize("why", ["No module named 'wrapt'", "wrapt is broken here"])
def test_missing_or_broken_dependency_prints_one_line_and_patches_nothing(
    way: str, toggle: str, why: str, autostarted: Environment, environment: Environment, stand_in: str
) -> None:
    name = "'wrapt'" if why.startswith("No") else None
    (Path(stand_in) / "wrapt.py").write_text(f"raise ImportError({why!r}, name={name})\n")
    imports = {
        "import": "import lightning_patches, lightning",
        "import afterwards": "import lightning, lightning_patches",
    }
    code = f"{imports.get(way, 'import lightning')}, _lightning_patches; print('ran', _lightning_patches.callbacks())"
    where = autostarted if way == "autostart" else environment
    launcher = [environment.command("lightning-patches"), "run", "--"] if way == "run" else []
    variables = {"PYTHONPATH": stand_in, "LIGHTNING_PATCHES": toggle}
    status, output = where.run(*launcher, where.python, "-c", code, **variables)
    assert (status, output.splitlines()[1:]) == (0, ["ran []"]), output
    assert output.startswith(f"lightning_patches: nothing is patched ({why}); `{where.python} -m pip install ")


def test_missing_dependency_is_an_error_under_strict(environment: Environment, stand_in: str) -> None:
    (Path(stand_in) / "wrapt.py").write_text("raise ImportError('No module', name='wrapt')\n")
    code = "import lightning_patches, lightning"
    status, output = environment.run("python", "-c", code, PYTHONPATH=stand_in, LIGHTNING_PATCHES="1,strict")
    assert status == 1
    assert "PatchError: nothing is patched (No module)" in output


@pytest.mark.parametrize("option", ["-I", "-E"])
def test_isolated_python_does_not_warn_at_a_trainer(option: str, autostarted: Environment) -> None:
    code = "import _lightning_patches; print(_lightning_patches.callbacks(), _lightning_patches.start())"
    assert autostarted.run("python", option, "-c", code, LIGHTNING_PATCHES="1") == (0, "[] None\n")


class TestHalfRemovedInstall:
    @pytest.fixture
    def copy(self, fresh_environment: Environment) -> Path:
        """A copy of the package in the environment, with autostart enabled."""
        (fresh_environment.site / "0_checkout.pth").unlink()
        copy = fresh_environment.site / "lightning_patches"
        shutil.copytree(ROOT / "lightning_patches", copy)
        shutil.copytree(ENTRY_POINTS / "_lightning_patches", fresh_environment.site / "_lightning_patches")
        status, output = fresh_environment.run("python", "-m", "lightning_patches", "autostart", "enable")
        assert status == 0, output
        return copy

    @pytest.mark.parametrize("removed", ["activation", "__init__.py", "errors.py", "patches", "", "*.py"])
    def test_program_runs_when_parts_of_the_package_are_removed(self, fresh_environment, copy, stand_in, removed):
        for cache in copy.rglob("__pycache__"):
            shutil.rmtree(cache)
        for path in copy.glob(removed) if removed else [copy]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        code = "import lightning; print('ran')"
        status, output = fresh_environment.run("python", "-c", code, PYTHONPATH=stand_in, LIGHTNING_PATCHES="1")
        assert (status, output.splitlines()[-1]) == (0, "ran")

    @pytest.mark.parametrize("is_removed", [True, False])
    def test_child_process_starts_when_the_package_is_removed_or_damaged_during_run(
        self, fresh_environment, copy, is_removed
    ):
        """Later processes of a job that `run` started still start; a damaged package prints a line."""
        damage = (
            "shutil.rmtree(copy / '__pycache__', ignore_errors=True); [p.unlink() for p in copy.glob('*.py')]; "
            "(copy / '__init__.py').write_text('import nothing_of_that_name')"
        )
        code = (
            f"import pathlib, shutil, subprocess, sys; copy = pathlib.Path({str(copy)!r}); "
            f"{'shutil.rmtree(copy)' if is_removed else damage}; "
            "sys.exit(subprocess.call([sys.executable, '-c', 'print(123)']))"
        )
        if not is_removed:
            (fresh_environment.site / "lightning_patches_autostart.pth").unlink()
        program = fresh_environment.command("lightning-patches")
        status, output = fresh_environment.run(program, "run", "python", "-c", code)
        *printed, ran = output.splitlines()
        assert (status, ran) == (0, "123"), output
        starts = [] if is_removed else ["lightning_patches: not activated: ModuleNotFoundError"]
        assert [line[: len(start)] for line, start in zip(printed, starts)] == starts and len(printed) == len(starts)


def test_zip_archive_runs_and_is_armed(launch: Any, tmp_path: Path) -> None:
    path = tmp_path / "program.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(PLAIN, "__main__.py")
    status, output = launch("python", str(path))
    assert (status, look(output)["armed"]) == (0, True)


def test_package_in_a_zip_archive_works_by_import_but_not_by_run(tmp_path: Path) -> None:
    """In a zipapp the import works; `run` needs a directory for PYTHONPATH, and reports that there is none."""
    path = tmp_path / "bundle.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        for file in (ROOT / "lightning_patches").rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(ROOT))
        archive.writestr(
            "__main__.py",
            "import sys, lightning_patches\n"
            "print(type(sys.meta_path[0]).__name__, flush=True)\n"
            "from lightning_patches.cli import main\n"
            "sys.exit(main(['run', 'true']))\n",
        )
    done = subprocess.run([sys.executable, str(path)], env=variables(), capture_output=True, text=True)
    assert done.stdout == "_Finder\n"
    assert done.returncode == 2
    assert "installed in an archive" in done.stderr
