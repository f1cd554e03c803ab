"""The entry points that Lightning calls at every Trainer() and Fabric(): an unpatched rank warns."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

import pytest

from lightning_patches import notices
from lightning_patches.activation import startup
from lightning_patches.cli import run as run_command
from lightning_patches.engine import toggle, words
from tests.activation.conftest import Environment  # puts the directory of _lightning_patches on the path
from tests.support.run import ROOT, execute
from tests.support.variants import Variant, environment_of

import _lightning_patches  # isort: skip

PROGRAM = """
import os
import warnings
warnings.filterwarnings("ignore")
if os.environ.get("PROBE_WAY") == "import":
    import lightning_patches
if os.environ["PROBE_NAMESPACE"] == "lightning":
    import lightning.pytorch as pl, lightning.fabric as fabric
else:
    import pytorch_lightning as pl, lightning_fabric as fabric
if os.environ.get("PROBE_WAY") == "stop":
    import lightning_patches
    lightning_patches.deactivate()
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
for _ in range(2):
    print("callbacks", pl.Trainer(accelerator="cpu", devices=1, **quiet).callbacks)
import _lightning_patches
_lightning_patches._warned = False  # as in another process
for _ in range(2):
    print("callbacks", fabric.Fabric(accelerator="cpu", devices=1)._callbacks)
"""
NO_CALLBACKS = ["callbacks []", "callbacks []"]
RELEASES = {"lightning": Variant("lightning", "2.3.3"), "pytorch_lightning": Variant("pytorch-lightning", "2.6.4")}


def launch(environment: Environment, namespace: str, **more: str) -> list[str]:
    """Return the lines about unpatched ranks that the program printed."""
    release = environment_of(RELEASES[namespace])["PYTHONPATH"].split(os.pathsep)
    path = os.pathsep.join(entry for entry in release if entry != str(ROOT))
    variables = environment.variables(
        lightning=False,
        PYTHONPATH=path,
        PYTHONWARNINGS="ignore",
        PYTHONUNBUFFERED="1",  # stdout and stderr in the order in which they were written
        PROBE_NAMESPACE=namespace,
        **more,
    )
    status, output = execute([environment.python, "-c", PROGRAM], variables, 200)
    assert status == 0, output
    return [line for line in output.splitlines() if line.startswith(("lightning_patches", "callbacks"))]


@pytest.mark.parametrize("namespace", ["lightning", "pytorch_lightning"])
def test_unpatched_rank_warns_once(environment: Environment, namespace: str) -> None:
    """The first Trainer or Fabric warns; neither gets a callback."""
    lines = launch(environment, namespace, LIGHTNING_PATCHES="crash", LOCAL_RANK="3")
    notice = lines[0]
    assert notice.startswith("lightning_patches: [rank 3] LIGHTNING_PATCHES=crash, but this process is not patched.")
    assert "Put `import lightning_patches` at the top of the script" in notice
    assert lines == [notice, *NO_CALLBACKS, notice, *NO_CALLBACKS]


def test_patched_rank_prints_nothing(environment: Environment) -> None:
    announced, *rest = launch(environment, "lightning", PROBE_WAY="import", LIGHTNING_PATCHES="1")
    assert announced.startswith("lightning_patches: lightning 2.3.3: ")
    assert rest == [*NO_CALLBACKS, *NO_CALLBACKS]


def test_deactivated_rank_prints_nothing(environment: Environment) -> None:
    lines = launch(environment, "lightning", PROBE_WAY="stop", LIGHTNING_PATCHES="1,quiet")
    assert lines == [*NO_CALLBACKS, *NO_CALLBACKS]


def test_broken_toggle_is_reported_at_start_and_by_the_entry_point(autostarted: Environment) -> None:
    named, notice, *rest = launch(autostarted, "lightning", LIGHTNING_PATCHES="logged-metric-device")
    assert "Did you mean 'logged-metrics-device'" in named
    assert "Nothing is patched." in named
    assert "could not activate the patches. Read its message above" in notice
    assert rest == [*NO_CALLBACKS, notice, *NO_CALLBACKS]


class TestWorkers:
    """Workers that do not run the script of a program that imports the package."""

    LOOK = "import _lightning_patches as us; us.callbacks(); us.callbacks()"
    NOTICE = (
        "lightning_patches: [rank 0] the program that started this worker is patched, but this process is not patched. "
        "It did not run the script that imports lightning_patches. Put the import into the function that the worker "
        "calls, or start the program with `lightning-patches run`.\n"
    )

    def start(self, environment: Environment, directory: Path, setup: str, command: str, **more: str) -> str:
        """Run a script that starts a command, and return what both printed."""
        script = directory / "script.py"
        script.write_text(f"import subprocess, sys\n{setup}\nsubprocess.run({command}, check=True)\n")
        status, output = environment.run("python", str(script), **more)
        assert status == 0, output
        return output

    @pytest.mark.parametrize(
        "setup", ["import lightning_patches", "import lightning_patches as p; p.activate('default,strict')"]
    )
    def test_worker_warns_once_when_its_parent_imports_the_package(self, environment, tmp_path, setup):
        assert self.start(environment, tmp_path, setup, f"[sys.executable, '-c', {self.LOOK!r}]") == self.NOTICE

    @pytest.mark.parametrize(
        ("setup", "toggle"),
        [
            ("import lightning_patches", "0"),
            ("import lightning_patches as p; p.deactivate()", ""),
            ("import lightning_patches as p; p.activate('none')", ""),
        ],
    )
    def test_worker_is_silent_when_its_parent_is_not_patched(self, environment, tmp_path, setup, toggle):
        command = f"[sys.executable, '-c', {self.LOOK!r}]"
        assert self.start(environment, tmp_path, setup, command, LIGHTNING_PATCHES=toggle) == ""

    def test_other_script_is_silent_when_its_parent_imports_the_package(self, environment, tmp_path):
        (tmp_path / "other.py").write_text(self.LOOK)
        command = f"[sys.executable, {str(tmp_path / 'other.py')!r}]"
        assert self.start(environment, tmp_path, "import lightning_patches", command) == ""

    def test_spawned_rank_warns_when_the_import_is_below_the_main_guard(self, environment, tmp_path):
        (tmp_path / "script.py").write_text(
            "import multiprocessing\nimport _lightning_patches\n"
            "if __name__ == '__main__':\n"
            "    import lightning_patches\n"
            "    process = multiprocessing.get_context('spawn').Process(target=_lightning_patches.callbacks)\n"
            "    process.start()\n    process.join()\n"
        )
        assert environment.run("python", str(tmp_path / "script.py")) == (0, self.NOTICE)

    def test_worker_is_armed_when_run_starts_its_parent(self, environment: Environment, tmp_path: Path) -> None:
        (tmp_path / "script.py").write_text(
            f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {self.LOOK!r}], check=True)\n"
        )
        command = (environment.command("lightning-patches"), "run", str(tmp_path / "script.py"))
        assert environment.run(*command) == (0, "")


class TestWithoutLightning:
    @pytest.fixture(autouse=True)
    def _fresh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_lightning_patches, "_warned", False)
        monkeypatch.delitem(sys.modules, "lightning_patches.activation.startup", raising=False)
        for name in (*_lightning_patches._RANK_VARIABLES, startup.LAUNCHED_FOR, startup.PARENT):
            monkeypatch.delenv(name, raising=False)

    @pytest.mark.parametrize("value", [None, "", " ", "0", "off", "False", "none", "no"])
    def test_notice_is_absent_when_patches_are_not_requested(self, value, monkeypatch, capsys):
        monkeypatch.delenv("LIGHTNING_PATCHES", raising=False)
        if value is not None:
            monkeypatch.setenv("LIGHTNING_PATCHES", value)
        assert _lightning_patches.callbacks() == []
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("variable", _lightning_patches._RANK_VARIABLES)
    def test_unpatched_rank_names_its_number_once(self, variable, monkeypatch, capsys):
        monkeypatch.setenv("LIGHTNING_PATCHES", "1")
        monkeypatch.setenv(variable, "5")
        assert _lightning_patches.callbacks() == _lightning_patches.callbacks() == []
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "[rank 5]" in error

    def test_notice_names_a_python_that_run_cannot_patch(self, monkeypatch, capsys):
        monkeypatch.setenv("LIGHTNING_PATCHES", "1")
        monkeypatch.setenv(startup.LAUNCHED_FOR, "3.9 /elsewhere")
        _lightning_patches.callbacks()
        assert "this Python belongs to another" in capsys.readouterr().err

    def test_notice_names_another_sitecustomize_that_hides_ours(self, monkeypatch, capsys):
        monkeypatch.setenv("LIGHTNING_PATCHES", "1")
        environment = run_command.child_environment({}, run_command.LAUNCHER, None)
        monkeypatch.setenv(startup.LAUNCHED_FOR, environment[startup.LAUNCHED_FOR])
        _lightning_patches.callbacks()
        assert "another tool's sitecustomize came first" in capsys.readouterr().err

    @pytest.mark.parametrize(("toggle", "is_told"), [("", True), ("1", True), ("0", False)])
    def test_script_with_a_lazy_import_warns_once(self, toggle, is_told, monkeypatch, capsys):
        monkeypatch.setenv("LIGHTNING_PATCHES", toggle)
        monkeypatch.setattr(sys, "lazy_modules", {"json", "lightning_patches"}, raising=False)
        monkeypatch.delitem(sys.modules, "lightning_patches")
        assert _lightning_patches.callbacks() == _lightning_patches.callbacks() == []
        error = capsys.readouterr().err
        assert error.count("The import is lazy: Python 3.15 delays it") == error.count("\n") == is_told

    def test_closed_stderr_raises_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LIGHTNING_PATCHES", "1")
        monkeypatch.setattr(sys, "stderr", None)
        assert _lightning_patches.callbacks() == []

    def test_patched_process_is_healthy(self, monkeypatch, capsys):
        monkeypatch.setenv("LIGHTNING_PATCHES", "1")
        for settled, printed in ((True, 0), (False, 1)):
            stand_in = types.SimpleNamespace(is_settled=lambda settled=settled: settled)
            monkeypatch.setitem(sys.modules, "lightning_patches.activation.startup", stand_in)
            _lightning_patches.callbacks()
            assert capsys.readouterr().err.count("not patched") == printed


@pytest.mark.parametrize("value", ["", " ", ",", " off ", "0,", "OFF", "1", "quiet", "no-crash", "off,crash", "0 1"])
def test_all_ways_in_parse_the_toggle_alike(value, monkeypatch, environment):
    """The entry point, the start of Python, and `status` treat a blank value as unset."""
    monkeypatch.setenv("LIGHTNING_PATCHES", value)
    asked = _lightning_patches._wanted()
    assert words.asks_for_patches(value) is asked
    program = "import sys; sys.modules['site'].__spec__._initializing = True\n"
    program += "from lightning_patches.activation import startup; print(startup.is_settled())"
    assert environment.run("python", "-c", program, LIGHTNING_PATCHES=value) == (0, f"{asked}\n")


def test_toggle_words_are_the_same_everywhere() -> None:
    """Modules that must not import the toggle have copies of its words."""
    assert _lightning_patches._NOTHING == words.NOTHING_WORDS
    assert _lightning_patches.LAUNCHED_FOR == startup.LAUNCHED_FOR
    assert _lightning_patches.PARENT == startup.PARENT
    assert {_lightning_patches.VARIABLE, startup.VARIABLE, toggle.VARIABLE} == {words.VARIABLE}
    source = (ROOT / "lightning_patches" / "activation" / "launcher" / "sitecustomize.py").read_text()
    assert f'"{startup.LAUNCHED_FOR}"' in source
    assert _lightning_patches._RANK_VARIABLES == notices._RANK_VARIABLES
