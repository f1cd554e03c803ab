"""``lightning-patches run``: the program's arguments, environment and exit status."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, Optional

import pytest

from lightning_patches.cli import run as run_command
from lightning_patches.cli._exit_status import UsageError
from tests.activation.conftest import HEAVY, PROGRAMS, Environment
from tests.support.run import ROOT, execute

PLAIN = str(PROGRAMS / "plain.py")
LAUNCHER = str(ROOT / "lightning_patches" / "activation" / "launcher")


def launch(environment: Environment, *arguments: str, cwd: Optional[Path] = None, **more: str) -> tuple[int, str]:
    return environment.run(environment.command("lightning-patches"), "run", *arguments, cwd=cwd, **more)


def seen(outcome: tuple[int, str]) -> dict[str, Any]:
    status, output = outcome
    assert status == 0, output
    found = json.loads(output.splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "program",
    [
        (PLAIN,),
        ("--", PLAIN),
        ("-m", "plain"),
        ("python", PLAIN),
        ("env", "FURTHER=1", "python", PLAIN),
        ("sh", "-c", f'exec python {PLAIN} "$@"', "sh"),
    ],
    ids=["script", "separator", "module", "python", "command", "shell"],
)
def test_program_is_patched_and_gets_its_arguments(environment: Environment, program: tuple[str, ...]) -> None:
    found = seen(launch(environment, *program, "--patches", "-m", "--", "-h", "a b", cwd=PROGRAMS))
    assert found["armed"]
    assert found["argv"] == ["--patches", "-m", "--", "-h", "a b"]
    assert found["variables"] == {"LIGHTNING_PATCHES": "1", "PYTHONPATH": LAUNCHER}
    assert not HEAVY & set(found["modules"])


def test_directories_and_archives_with_a_main_are_run_by_this_python(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    shutil.copy(PLAIN, tmp_path / "app" / "__main__.py")
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.write(PLAIN, "__main__.py")
    for program in (tmp_path / "app", tmp_path / "app.pyz"):
        assert seen(launch(environment, str(program), "x"))["armed"]


def make_app(place: Path, packed: bool) -> None:
    if packed:
        with zipfile.ZipFile(place, "w") as archive:
            archive.write(PLAIN, "__main__.py")
    else:
        place.mkdir()
        shutil.copy(PLAIN, place / "__main__.py")


@pytest.mark.parametrize("separator", [(), ("--",)], ids=["", "separator"])
@pytest.mark.parametrize("packed", [False, True], ids=["directory", "archive"])
def test_bare_name_runs_the_command_on_path_when_the_working_directory_has_an_app_of_that_name(
    environment: Environment, tmp_path: Path, packed: bool, separator: tuple[str, ...]
) -> None:
    make_app(tmp_path / "true", packed)
    assert launch(environment, *separator, "true", cwd=tmp_path) == (0, "")
    assert seen(launch(environment, *separator, "./true", cwd=tmp_path))["armed"]


@pytest.mark.parametrize("packed", [False, True], ids=["directory", "archive"])
def test_bare_name_runs_the_app_in_the_working_directory_when_path_has_no_such_command(environment, tmp_path, packed):
    make_app(tmp_path / "no-such-command", packed)
    assert seen(launch(environment, "no-such-command", "x", cwd=tmp_path))["argv"] == ["x"]


@pytest.mark.parametrize("name", ["-m.py", "--patches.py", "-c.py"])
def test_script_runs_when_its_name_starts_with_a_hyphen(environment: Environment, tmp_path: Path, name: str) -> None:
    shutil.copy(PLAIN, tmp_path / name)
    assert seen(launch(environment, "--", name, "-x", cwd=tmp_path))["argv"] == ["-x"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("run", "train.py"), 127), (("doctor", "--no-torch"), 2), (("autostart", "export", "new"), 2)],
    ids=["run", "doctor", "autostart"],
)
def test_command_names_the_cause_when_the_working_directory_was_deleted(environment, tmp_path, arguments, status):
    (tmp_path / "gone").mkdir()
    line = 'rmdir "$PWD"; exec "$@"'
    command = ["sh", "-c", line, "sh", environment.command("lightning-patches"), *arguments]
    ended, output = environment.run(*command, cwd=tmp_path / "gone")
    assert ended == status
    assert "the working directory no longer exists. Change to another directory." in output
    assert "bug of lightning-patches" not in output


def test_command_of_this_environment_is_found_without_it_on_path(environment: Environment) -> None:
    found = seen(launch(environment, "lightning-patches", "run", PLAIN, PATH=os.defpath))
    assert found["armed"]
    assert found["variables"]["PYTHONPATH"] == LAUNCHER  # added once


@pytest.mark.parametrize(
    ("set_to", "option", "expected", "armed"),
    [
        (None, None, "1", True),
        ("", None, "1", True),
        (",", None, "1", True),
        ("crash,strict", None, "crash,strict", True),
        ("crash", "all", "all", True),
        ("off", None, "off", False),
        ("off", "on", "on", True),
        ("1", "none", "none", False),
    ],
)
def test_run_passes_the_toggle_of_the_option_or_else_of_the_environment(environment, set_to, option, expected, armed):
    more = {} if set_to is None else {"LIGHTNING_PATCHES": set_to}
    options = () if option is None else ("--patches", option)
    found = seen(launch(environment, *options, PLAIN, **more))
    assert found["variables"]["LIGHTNING_PATCHES"] == expected
    assert found["armed"] is armed


def test_import_patches_a_child_that_lost_the_variable(environment: Environment) -> None:
    """The child has our sitecustomize but not the variable, so the import in its script decides."""
    child = "import sys, lightning_patches; print(any(type(f).__name__ == '_Finder' for f in sys.meta_path))"
    run_it = f"subprocess.call([sys.executable, '-c', {child!r}])"
    program = environment.directory.parent / "parent.py"
    program.write_text(f"import os, subprocess, sys; del os.environ['LIGHTNING_PATCHES']; {run_it}")
    assert launch(environment, str(program)) == (0, "True\n")


@pytest.mark.parametrize(
    ("arguments", "variable", "message"),
    [
        (("--patches", "logged-metric-device", PLAIN), "", "Did you mean 'logged-metrics-device'"),
        (("--patches=nonsense", PLAIN), "", "no patch, group or issue called 'nonsense'"),
        ((PLAIN,), "logged-metric-device", "Did you mean 'logged-metrics-device'"),
        (("--patches",), "", "--patches needs a value"),
        (("--loud", PLAIN), "", "no option '--loud'"),
        (("-m",), "", "-m needs the name of a module"),
        ((), "", "no program given"),
        (("--",), "", "no program given"),
    ],
)
def test_wrong_use_ends_with_status_2(environment, arguments, variable, message):
    status, output = launch(environment, *arguments, LIGHTNING_PATCHES=variable)
    assert status == 2
    assert message in output
    assert "Traceback" not in output


def test_missing_and_broken_programs_end_as_in_a_shell(environment: Environment, tmp_path: Path) -> None:
    status, output = launch(environment, "no-such-program")
    assert (status, "no-such-program: not found" in output) == (127, True)
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01not a program")
    broken.chmod(0o755)
    status, output = launch(environment, str(broken))
    assert (status, "Exec format error" in output) == (126, True)


def test_signals_reach_the_program(environment: Environment, tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text(
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(55))\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(60)\n"
    )
    for number, status in ((signal.SIGUSR1, 55), (signal.SIGTERM, -signal.SIGTERM)):
        (tmp_path / "ready").unlink(missing_ok=True)
        command = [environment.command("lightning-patches"), "run", str(program)]
        process = subprocess.Popen(command, env=environment.variables(lightning=False), cwd=tmp_path)
        try:
            deadline = time.monotonic() + 200
            while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(number)
            assert process.wait(200) == status
        finally:
            process.kill()
            process.wait()


def test_closed_pipe_ends_the_program_as_usual(environment: Environment) -> None:
    """Python ignores SIGPIPE, and a program that is not Python must not inherit that."""
    line = f"{environment.command('lightning-patches')} run yes | head -n 1; echo ${{PIPESTATUS[0]}}"
    status, output = execute(["bash", "-c", line], environment.variables(lightning=False), 200)
    assert output.split() == ["y", str(128 + signal.SIGPIPE)]


def test_pythonpath_of_the_user_is_kept(environment: Environment, tmp_path: Path) -> None:
    for before, after in (("", LAUNCHER), (f"{tmp_path}", f"{LAUNCHER}:{tmp_path}")):
        found = seen(launch(environment, PLAIN, PYTHONPATH=before))
        assert found["variables"]["PYTHONPATH"] == after
        assert not {"", str(environment.directory)} & set(found["path"])  # an empty entry is the current directory


def test_other_python_is_not_patched_and_named(environment, fresh_environment, tmp_path):
    """A Python of another environment, which has the same package but not the environment of `run`."""
    status, output = launch(environment, fresh_environment.python, PLAIN)
    assert status == 0, output
    warning, line = output.splitlines()
    assert "it will not be patched" in warning
    assert fresh_environment.python in warning
    found = json.loads(line)
    assert found["prefix"] == str(fresh_environment.directory)
    assert not found["loaded"]

    script = tmp_path / "tool"
    script.write_text(f"#!{fresh_environment.python}\nprint('ran')\n")
    script.chmod(0o755)
    status, output = launch(environment, str(script))
    assert status == 0
    assert "it will not be patched" in output
    assert output.endswith("ran\n")


def test_package_outside_of_sys_path_brings_none_of_its_neighbors(tmp_path: Path) -> None:
    """The program can import the package, but no module beside it."""
    shutil.copytree(ROOT / "lightning_patches", tmp_path / "aside" / "lightning_patches")
    (tmp_path / "aside" / "json.py").write_text("raise SystemExit('a file beside the package was imported')\n")
    (tmp_path / "aside" / "bystander.py").write_text("")
    start = f"import sys; sys.path.append({str(tmp_path / 'aside')!r}); sys.argv[0] = 'lightning-patches'\n"
    start += "from lightning_patches.cli import main; sys.exit(main())"
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LIGHTNING_PATCHES")}
    program = "import json, sys; print(json.dumps([sys.path, sys.modules['lightning_patches'].__file__]))"
    command = [sys.executable, "-c", start, "run", "--", sys.executable, "-c", program]
    status, output = execute(command, variables, 200, cwd=str(tmp_path))
    assert status == 0, output
    path, file = json.loads(output)
    assert file == str(tmp_path / "aside" / "lightning_patches" / "__init__.py")
    assert str(tmp_path / "aside") not in path


class TestWhyUnsafe:
    """A directory that others can write to is not put on PYTHONPATH."""

    @pytest.fixture
    def launcher(self, tmp_path: Path) -> Path:
        directory = tmp_path / "lightning_patches" / "activation" / "launcher"
        directory.mkdir(parents=True)
        (directory / "sitecustomize.py").write_text("")
        for place in (directory, directory.parent, tmp_path):
            place.chmod(0o755)
        return directory

    @pytest.mark.parametrize("levels", [0, 1, 2])
    def test_world_writable_directory_is_refused(self, launcher: Path, levels: int) -> None:
        place = (launcher, *launcher.parents)[levels]
        place.chmod(0o777)
        assert run_command.why_unsafe(launcher) == f"others can write to '{place}': `chmod o-w {place}` ends that"

    def test_launcher_without_sitecustomize_is_refused(self, launcher: Path) -> None:
        (launcher / "sitecustomize.py").unlink()
        assert "half-removed" in run_command.why_unsafe(launcher)

    def test_directory_with_a_colon_in_its_name_is_refused(self, launcher: Path) -> None:
        odd = launcher.parents[1] / "a:b"
        launcher.parent.rename(odd)
        assert "PYTHONPATH does not allow" in run_command.why_unsafe(odd / "launcher")

    def test_run_refuses_an_unsafe_launcher_and_says_what_to_do(self, launcher, monkeypatch):
        launcher.chmod(0o777)
        monkeypatch.setattr(run_command, "LAUNCHER", launcher)
        from lightning_patches import cli

        with pytest.raises(UsageError, match="import lightning_patches"):
            run_command.run(cli._parser(["run", PLAIN]).parse_args(["run", PLAIN]))
        assert stat.S_IMODE(launcher.stat().st_mode) == 0o777  # reported, but not changed
