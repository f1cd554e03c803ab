"""Workers of joblib, loky, submitit and distributed, which don't run the program's script."""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.activation import startup
from lightning_patches.engine import hooks
from tests.activation.conftest import PATCHES, PROGRAMS, Environment
from tests.support.variants import ROOT

LAUNCHER = str(ROOT / "lightning_patches" / "activation" / "launcher")
NOTICE = "the program that started this worker is patched, but this process is not patched"

pytestmark = pytest.mark.skipif(sys.version_info < (3, 10), reason="`sys.orig_argv` came with Python 3.10")


@pytest.mark.parametrize("toggle", ["", "19813"])
@pytest.mark.parametrize("library", ["joblib", "submitit"])
def test_worker_gets_the_patches_of_the_program(environment, tmp_path, library, toggle):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}")
    command = ("python", str(PROGRAMS / "worker_libraries.py"), library, *([toggle] if toggle else []))
    status, output = environment.run(*command, cwd=tmp_path, lightning=True)
    assert status == 0, output
    assert NOTICE not in output
    found = json.loads(output.splitlines()[-1])
    here = found["here"]
    assert here["live"] == (PATCHES[:1] if toggle else PATCHES)
    for worker in found["workers"]:
        assert worker["pid"] != here["pid"]
        assert (worker["live"], worker["applied"]) == (here["live"], here["applied"])


LOOK = """
import json, os, sys
def look():
    import _lightning_patches
    _lightning_patches.callbacks()
    hooks = sys.modules.get("lightning_patches.engine.hooks")
    other = sys.modules.get("sitecustomize")
    return {
        "armed": bool(hooks and hooks.is_watching()),
        "toggle": os.environ.get("LIGHTNING_PATCHES"),
        "path": [entry for entry in sys.path if "launcher" in entry],
        "sitecustomize": getattr(other, "NAME", None),
    }
if __name__ == "__main__":
    print(json.dumps(look()))
"""


def write_library(site: Path, name: str) -> None:
    """Write what shows that a package is this library: its file and its metadata."""
    file = site / name / hooks.WORKER_LIBRARIES[name]
    file.parent.mkdir(parents=True)
    file.write_text("")
    (site / f"{name}-1.0.dist-info").mkdir()
    (site / name / "__init__.py").write_text("")


def start(
    environment: Environment, directory: Path, command: str, setup: str = "", library: str = "loky", **more: str
) -> Any:
    """Run a script that imports the package and a library, and starts a child; return what the child has seen."""
    write_library(directory, library)
    (directory / "other").mkdir()
    (directory / "other" / "__init__.py").write_text("")
    for package in (library, "other"):
        (directory / package / "worker.py").write_text(LOOK)
    (directory / "script.py").write_text(
        f"import subprocess, sys\nimport lightning_patches\n{setup}\nimport {library}\n"
        f"subprocess.run([sys.executable, {command}], check=True)\n"
    )
    status, output = environment.run("python", str(directory / "script.py"), cwd=directory, **more)
    assert status == 0, output
    *notices, last = output.splitlines()
    return {**json.loads(last), "warns": any(NOTICE in line for line in notices)}


@pytest.mark.parametrize("library", hooks.WORKER_LIBRARIES)
def test_worker_is_armed_with_the_default_set(environment: Environment, tmp_path: Path, library: str) -> None:
    found = start(environment, tmp_path, f"'-u', '-m', '{library}.worker', 'argument'", library=library)
    expected = {"armed": True, "toggle": "default", "path": [], "sitecustomize": None, "warns": False}
    assert {**found, "sitecustomize": None} == expected


@pytest.mark.parametrize(
    ("setup", "variable", "toggle"),
    [
        ("", "-19813", "-19813"),
        ("lightning_patches.activate('19813,quiet')", "", "19813,quiet"),
        ("lightning_patches.activate('19813')", "crash", "19813"),
        ("lightning_patches.activate('19813'); lightning_patches.activate()", "", "default"),
    ],
)
def test_worker_gets_the_selection_of_the_program(environment, tmp_path, setup, variable, toggle):
    found = start(environment, tmp_path, "'-m', 'loky.worker'", setup, LIGHTNING_PATCHES=variable)
    assert (found["armed"], found["toggle"]) == (True, toggle)


@pytest.mark.parametrize(
    "setup", ["lightning_patches.deactivate()", "lightning_patches.activate('none')", "import os; os.environ.clear()"]
)
def test_worker_stays_unpatched_when_the_program_is(environment: Environment, tmp_path: Path, setup: str) -> None:
    found = start(environment, tmp_path, "'-m', 'loky.worker'", setup)
    assert not found["armed"]
    assert not found["warns"]


CODE = "import json, loky.worker; print(json.dumps(loky.worker.look()))"


@pytest.mark.parametrize(
    ("command", "warns"), [("'other/worker.py'", False), ("'-m', 'other.worker'", True), (f"'-c', {CODE!r}", True)]
)
def test_other_child_process_is_unchanged(environment: Environment, tmp_path: Path, command: str, warns: bool) -> None:
    found = start(environment, tmp_path, command)
    assert (found["armed"], found["toggle"], found["path"], found["warns"]) == (False, None, [], warns)


@pytest.mark.parametrize("library", hooks.WORKER_LIBRARIES)
def test_package_of_the_program_with_the_name_of_a_library_is_not_a_library(environment, tmp_path, library):
    code = f"import lightning_patches, {library}, os; print(os.environ.get('PYTHONPATH'))"
    for missing in (hooks.WORKER_LIBRARIES[library], f"../{library}-1.0.dist-info"):
        site = tmp_path / missing.replace("/", "_")
        write_library(site, library)
        (site / library / missing).rename(site / "gone")
        assert environment.run("python", "-c", code, cwd=site) == (0, "None\n")


def test_child_with_a_module_of_the_program_is_unchanged_beside_a_library(environment, tmp_path):
    setup = "import loky, os; os.chdir('own')"
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "loky.py").write_text(LOOK)
    found = start(environment, tmp_path, "'-m', 'loky'", setup, PYTHONPATH=str(tmp_path))
    assert (found["armed"], found["toggle"]) == (False, None)


def test_worker_warns_when_another_sitecustomize_hides_ours(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "sitecustomize.py").write_text("NAME = 'tool'\n")
    found = start(environment, tmp_path, "'-m', 'loky.worker'", PYTHONPATH=str(tmp_path / "tool"))
    assert (found["armed"], found["sitecustomize"], found["warns"]) == (False, "tool", True)


def test_worker_runs_the_sitecustomize_of_its_environment(fresh_environment: Environment, tmp_path: Path) -> None:
    (fresh_environment.site / "sitecustomize.py").write_text("NAME = 'site'\n")
    alone = fresh_environment.run("python", "-c", "import sitecustomize; print(getattr(sitecustomize, 'NAME', 0))")
    found = start(fresh_environment, tmp_path, "'-m', 'loky.worker'")
    assert found["armed"]
    assert found["sitecustomize"] == ("site" if alone == (0, "site\n") else None)


class TestPythonPath:
    """``PYTHONPATH`` of the program, which its workers inherit."""

    @pytest.fixture(autouse=True)
    def _fresh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in (startup.PARENT, startup.PARENT_TOGGLE, startup.LAUNCHED_FOR):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(hooks._finder, "on_worker_library", None)
        for name in hooks.WORKER_LIBRARIES:
            monkeypatch.delitem(sys.modules, name, raising=False)

    def test_pythonpath_is_unchanged_without_a_worker_library(self, environment: Environment, tmp_path: Path) -> None:
        code = "import os, lightning_patches, json, csv; print(os.environ.get('PYTHONPATH'))"
        assert environment.run("python", "-c", code, cwd=tmp_path) == (0, "None\n")
        assert environment.run("python", "-c", code, cwd=tmp_path, PYTHONPATH=":a") == (0, ":a\n")

    @pytest.mark.parametrize(
        ("before", "during"),
        [(None, LAUNCHER), ("", LAUNCHER), ("/a:/b", f"/a:/b:{LAUNCHER}"), (f"{LAUNCHER}:/a", f"{LAUNCHER}:/a")],
    )
    @pytest.mark.parametrize("is_imported", [True, False])
    def test_launcher_is_appended_and_removed(self, before, during, is_imported, monkeypatch, tmp_path):
        monkeypatch.delenv("PYTHONPATH", raising=False)
        if before is not None:
            monkeypatch.setenv("PYTHONPATH", before)
        monkeypatch.setenv(startup.PARENT, startup.this_python())
        write_library(tmp_path, "joblib")
        monkeypatch.syspath_prepend(tmp_path)
        if is_imported:
            monkeypatch.setitem(sys.modules, "joblib", os)
            hooks.call_for_worker_libraries(startup._patch_workers)
        else:
            hooks.call_for_worker_libraries(startup._patch_workers)
            assert os.environ.get("PYTHONPATH") == before
            assert hooks._finder.find_spec("joblib") is None
        assert os.environ["PYTHONPATH"] == during
        startup._undo_worker_settings()
        assert os.environ.get("PYTHONPATH") == (before or None)
        assert startup.PARENT not in os.environ


def test_launcher_has_the_same_worker_libraries_and_variables() -> None:
    launcher = runpy.run_path(os.path.join(LAUNCHER, "sitecustomize.py"))
    assert launcher["_WORKER_LIBRARIES"] == hooks.WORKER_LIBRARIES
    assert launcher["_PARENT"] == startup.PARENT
    assert f"{startup.PARENT}_TOGGLE" == startup.PARENT_TOGGLE
