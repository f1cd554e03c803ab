"""``sitecustomize`` modules of other tools also run, in any form, and errors in them do not affect ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.activation.conftest import PROGRAMS, Environment

PLAIN = str(PROGRAMS / "plain.py")
NEIGHBOUR = "import sys\nsys.neighbours = getattr(sys, 'neighbours', 0) + 1\n"


def neighbour(directory: Path, form: str, code: str = NEIGHBOUR) -> Path:
    """Write a ``sitecustomize``, as module or as package, and return its directory."""
    directory.mkdir(exist_ok=True)
    if form == "package":
        (directory / "sitecustomize").mkdir()
        (directory / "sitecustomize" / "__init__.py").write_text(f"from . import part\n{code}")
        (directory / "sitecustomize" / "part.py").write_text("")
    else:
        (directory / "sitecustomize.py").write_text(code)
    return directory


def has_one_in_its_library(environment: Environment) -> bool:
    """Debian's Python brings a ``sitecustomize``, which comes before any in the site directory."""
    return json.loads(environment.run("python", PLAIN)[1])["sitecustomize"] is not None


def launch(environment: Environment, *program: str, **more: str) -> tuple[int, str]:
    return environment.run(environment.command("lightning-patches"), "run", *program, **more)


@pytest.mark.parametrize("form", ["module", "package"])
@pytest.mark.parametrize("place", ["PYTHONPATH", "site"])
def test_other_sitecustomize_runs_once_under_its_name(environment, fresh_environment, tmp_path, form, place):
    if place == "site":
        neighbour(fresh_environment.site, form)
        where, more = fresh_environment, {}
    else:
        directory = neighbour(tmp_path / "other", form)
        where, more = environment, {"PYTHONPATH": str(directory)}
    alone = json.loads(where.run("python", PLAIN, **more)[1])
    assert alone["neighbours"] == (0 if place == "site" and has_one_in_its_library(environment) else 1)
    status, output = launch(where, PLAIN, **more)
    assert status == 0, output
    found = json.loads(output)
    assert found["armed"]
    for what in ("neighbours", "sitecustomize"):
        assert found[what] == alone[what]


def test_chaining_sitecustomize_in_front_works(environment: Environment, tmp_path: Path) -> None:
    """`lightning-patches run other-tool python ...`: the other tool puts its directory in front of ours."""
    code = (
        f"{NEIGHBOUR}"
        "own = __file__.rpartition('/')[0]\n"
        "sys.path.remove(own)\n"
        "me = sys.modules.pop('sitecustomize')\n"
        "try:\n    import sitecustomize\n"
        "except ImportError:\n    sys.modules['sitecustomize'] = me\n"
        "sys.path.insert(0, own)\n"
    )
    directory = neighbour(tmp_path / "other", "module", code)
    status, output = launch(environment, "sh", "-c", f"PYTHONPATH={directory}:$PYTHONPATH exec python {PLAIN}")
    assert status == 0, output
    found = json.loads(output)
    assert found["armed"]
    assert found["neighbours"] == 1


def make_tracer(environment: Environment, directory: Path, puts_back: bool) -> str:
    """Write a command that starts a program with its own ``sitecustomize``, which hides the next one.

    ``elasticapm-run`` does this. ``opentelemetry-instrument`` also puts its directory back to the front of PYTHONPATH
    in every process.
    """
    code = f"import os\nos.environ['PYTHONPATH'] = '{directory}:' + os.environ['PYTHONPATH']\n" if puts_back else ""
    neighbour(directory, "module", NEIGHBOUR + code)
    command = environment.directory / "bin" / "tracer"
    command.write_text(
        f"#!{environment.python}\nimport os, shutil, sys\n"
        f"os.environ['PYTHONPATH'] = '{directory}:' + os.environ.get('PYTHONPATH', '')\n"
        "os.execl(shutil.which(sys.argv[1]), *sys.argv[1:])\n"
    )
    command.chmod(0o755)
    return str(command)


@pytest.mark.parametrize("puts_back", [False, True])
@pytest.mark.parametrize("order", ["tracer outside", "tracer inside"])
def test_ranks_are_armed_when_a_tracer_hides_the_next_sitecustomize(fresh_environment, tmp_path, order, puts_back):
    tracer = make_tracer(fresh_environment, tmp_path / "tracer", puts_back)
    program = tmp_path / "program.py"  # starts a rank, which starts a worker
    program.write_text(
        "import runpy, subprocess, sys\n"
        "if int(sys.argv[1]):\n"
        "    subprocess.run([sys.executable, __file__, str(int(sys.argv[1]) - 1)])\n"
        f"runpy.run_path({PLAIN!r})\n"
    )
    run = [fresh_environment.command("lightning-patches"), "run", "--"]
    command = [tracer, *run] if order == "tracer outside" else [*run, tracer]
    status, output = fresh_environment.run(*command, "python", str(program), "2")
    assert status == 0, output
    processes = [json.loads(line) for line in output.splitlines()]
    assert [(process["armed"], process["neighbours"]) for process in processes] == [(True, 1)] * 3


def test_execv_of_a_script_is_unchanged(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os, posix\nprint(os.execv is posix.execv)\n")
    assert launch(environment, str(tmp_path / "program.py")) == (0, "True\n")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise RuntimeError('broken neighbour')\n", "broken neighbour"),
        ("import no_such_module_anywhere\n", "no_such_module_anywhere"),
    ],
)
def test_error_of_another_sitecustomize_is_reported_as_usual(environment, tmp_path, code, expected):
    directory = neighbour(tmp_path / "other", "module", code)
    alone = environment.run("python", PLAIN, PYTHONPATH=str(directory))
    status, output = launch(environment, PLAIN, PYTHONPATH=str(directory))
    assert (alone[0], status) == (0, 0)
    assert ("Error in sitecustomize" in alone[1], expected in alone[1]) == (expected in output, expected in output)
    assert json.loads(output.splitlines()[-1])["armed"]


def test_foreign_python_still_gets_its_own_sitecustomize(environment, fresh_environment):
    neighbour(fresh_environment.site, "module")
    alone = json.loads(fresh_environment.run("python", PLAIN)[1])
    status, output = launch(environment, "sh", "-c", f"exec {fresh_environment.python} {PLAIN}")
    assert status == 0, output
    found = json.loads(output)
    assert found["prefix"] == str(fresh_environment.directory)
    assert alone["sitecustomize"] is not None
    for what in ("neighbours", "sitecustomize"):
        assert found[what] == alone[what]
    assert not found["loaded"]


def test_our_sitecustomize_is_loaded_if_there_is_no_other(environment: Environment) -> None:
    if has_one_in_its_library(environment):
        pytest.skip("this Python brings a sitecustomize of its own")
    status, output = launch(environment, PLAIN)
    assert json.loads(output)["sitecustomize"].endswith("launcher/sitecustomize.py")


def test_run_autostart_and_import_together_activate_once(autostarted: Environment, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, lightning_patches\nprint(sum(type(finder).__name__ == '_Finder' for finder in sys.meta_path))\n"
    )
    assert launch(autostarted, str(program)) == (0, "1\n")
