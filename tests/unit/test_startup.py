"""The effects of ``import lightning_patches`` on a Python process, before and after Lightning is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.run import check, python
from tests.unit.fakes import AFFECTED, ROOT, write_lightning

TOY = """
import os, sys
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
from tests.unit.fakes import *
use_catalogue(toy(), toy(METHOD, name="second", opt_in="users who try"))
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
import lightning_patches
from lightning_patches.activation import startup
"""
"""Makes two toy patches the catalogue; ``startup.on_import()`` then does what the import does."""
TOY_SITE = """
import sys
from importlib.machinery import ModuleSpec  # not in the finder: from Python 3.14 on it may import warnings
import lightning_patches
class Toys:  # makes a toy patch the catalogue, when that is imported
    def find_spec(self, name, path=None, target=None):
        if name == "lightning_patches.patches":
            return ModuleSpec(name, self)
    def create_module(self, spec): return None
    def exec_module(self, module):
        from tests.unit.fakes import toy, use_catalogue
        module.all_patches = None
        use_catalogue(toy())
sys.meta_path.insert(0, Toys())
"""

VALUES = """
from lightning.pytorch.subject import Base, compute
print(compute(3), len(Base().method(1)))
"""
STOCK, DEFAULT, ALL = "6 6", "60 6", "60 60"

LOADED = "import sys\nbefore = set(sys.modules)\n{}\nprint(*sorted(set(sys.modules) - before))"
ROOMS = ("activation", "activation.startup", "engine", "engine.hooks", "engine.words", "errors", "trust")
OURS = {"lightning_patches", *(f"lightning_patches.{name}" for name in ROOMS)}
BUILT_IN = {"__future__", "_thread"}
HEAVY = ("wrapt", "packaging", "importlib.metadata", "torch", "numpy", "lightning", "pytorch_lightning")


def heavy(loaded: str) -> list[str]:
    return [name for name in loaded.split() if any(f"{name}.".startswith(f"{root}.") for root in HEAVY)]


def start_with_us(directory: Path) -> None:
    """Make Python import this package while it starts."""
    (directory / "sitecustomize.py").write_text("import lightning_patches\n")


def broken_wrapt(directory: Path) -> None:
    (directory / "wrapt.py").write_text("raise ImportError('wrapt is broken here')\n")


@pytest.mark.parametrize("toggle", ["", "all,strict"])
def test_import_loads_only_the_finder(toggle: str) -> None:
    loaded = check(LOADED.format("import lightning_patches"), LIGHTNING_PATCHES=toggle)
    assert set(loaded.split()) <= OURS | BUILT_IN


def test_import_with_a_name_in_the_toggle_loads_only_the_index_too() -> None:
    loaded = check(LOADED.format("import lightning_patches"), LIGHTNING_PATCHES="all,-crash")
    assert "lightning_patches.engine.toggle" in loaded
    patches = {name for name in loaded.split() if name.startswith("lightning_patches.patches.")}
    assert patches == {"lightning_patches.patches._index"}  # the index is enough
    assert heavy(loaded) == []


@pytest.mark.parametrize("toggle", ["", "0", "1", "all,-crash"])
def test_autostart_loads_only_the_finder(tmp_path: Path, toggle: str) -> None:
    start_with_us(tmp_path)
    program = "import sys; print(any(type(f).__module__.startswith('lightning_patches') for f in sys.meta_path))"
    has_finder, _, loaded = check(f"{program}; print(*sys.modules)", tmp_path, LIGHTNING_PATCHES=toggle).partition("\n")
    assert has_finder == str(toggle not in ("", "0"))
    assert {name for name in loaded.split() if name.startswith("lightning_patches")} == OURS
    assert heavy(loaded) == []


def test_reading_the_catalogue_imports_neither_lightning_nor_torch() -> None:
    program = LOADED.format("from lightning_patches.patches import all_patches; all_patches()")
    loaded = check(program, _LIGHTNING_PATCHES_IMPORT_ONLY="1")
    assert "lightning_patches.patches.logging.compiled_log" in loaded
    assert heavy(loaded) == []


def test_only_one_finder_is_installed(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    program = """
import sys
before = list(sys.meta_path)
import lightning_patches
armed = [finder for finder in sys.meta_path if finder not in before]
print(len(armed), len(sys.meta_path) - len(before))
import json, collections, sqlite3  # nothing to do with Lightning
print(armed[0] in sys.meta_path)
import lightning.pytorch
others = [finder for finder in sys.meta_path if type(finder).__module__ != "wrapt.importer"]
print([finder for finder in others if finder not in before] == armed)
"""
    assert check(program, tmp_path).splitlines() == ["1 1", "True", "True"]


def test_find_spec_of_lightning_imports_nothing(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    program = (
        TOY
        + """
startup.on_import()
import importlib.util
print(importlib.util.find_spec("lightning") is not None, "lightning" in sys.modules)
"""
    )
    assert check(program + VALUES, tmp_path).splitlines() == ["True False", DEFAULT]


def test_import_after_lightning_patches_it(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    program = TOY + VALUES + "startup.on_import()" + VALUES
    assert check(program, tmp_path).splitlines() == [STOCK, DEFAULT]


@pytest.mark.parametrize("namespace", ["lightning", "pytorch_lightning"])
@pytest.mark.parametrize("part", ["pytorch", "fabric"])
def test_each_package_of_lightning_is_patched_when_imported_first(tmp_path: Path, namespace: str, part: str) -> None:
    write_lightning(tmp_path, namespace=namespace)
    program = TOY.replace("toy()", "toy(part + '.subject:compute')").replace("use_cat", f"part = {part!r}\nuse_cat")
    program += f"""
startup.on_import()
import importlib
name = distributions.module_name({namespace!r}, part + ".subject")
print(importlib.import_module(name).compute(3))
"""
    assert check(program, tmp_path) == "60"


def test_import_of_the_package_during_lightnings_import_works(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    (tmp_path / "lightning" / "pytorch" / "__init__.py").write_text(
        "from lightning.pytorch.importer import compute\nimport sys\nsys.modules['__main__'].meanwhile()\n"
    )
    program = TOY + "meanwhile = startup.on_import\nimport lightning.pytorch\nprint(lightning.pytorch.compute(3))"
    assert check(program, tmp_path) == "60"


@pytest.mark.parametrize(
    ("toggle", "expected"),
    [("1", DEFAULT), ("all", ALL), ("second", "6 60"), ("0", STOCK), ("off", STOCK), ("-toy", STOCK), ("toy", DEFAULT)],
)
def test_environment_selects_the_patches(tmp_path: Path, toggle: str, expected: str) -> None:
    write_lightning(tmp_path)
    assert check(TOY + "startup.on_import()" + VALUES, tmp_path, LIGHTNING_PATCHES=toggle) == expected


def test_script_selection_overrides_the_environment(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    program = TOY + "startup.on_import()\nlightning_patches.activate('second')" + VALUES
    assert check(program, tmp_path, LIGHTNING_PATCHES="1") == "6 60"


def test_off_prints_nothing_and_is_reported_as_disabled(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    result = python(
        TOY + "startup.on_import()" + VALUES + "print(*(e.reason for e in lightning_patches.report()), sep='; ')",
        tmp_path,
        LIGHTNING_PATCHES="0",
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [STOCK, "not selected by 0; not selected by 0"]


@pytest.mark.parametrize("toggle", ["logged-metrics-devise", "1,-loged-metrics-device"])
def test_broken_toggle_raises_in_an_explicit_import(toggle: str) -> None:
    result = python("import lightning_patches", LIGHTNING_PATCHES=toggle)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("LIGHTNING_PATCHES: there is no patch, group or issue called")
    assert "Did you mean 'logged-metrics-device'" in line
    caught = (
        "try:\n    import lightning_patches\nexcept ValueError as error:\n    print(type(error).__mro__[1].__name__)"
    )
    result = python(caught, LIGHTNING_PATCHES=toggle)
    assert (result.returncode, result.stdout) == (0, "ToggleError\n")


def test_broken_toggle_under_autostart_is_one_line(tmp_path: Path) -> None:
    start_with_us(tmp_path)
    write_lightning(tmp_path)
    unrelated = python("print('done')", tmp_path, LIGHTNING_PATCHES="nonsense")
    assert (unrelated.returncode, unrelated.stdout, unrelated.stderr) == (0, "done\n", "")
    result = python(VALUES, tmp_path, LIGHTNING_PATCHES="nonsense")
    assert (result.returncode, result.stdout) == (0, STOCK + "\n")
    (line,) = result.stderr.splitlines()
    assert line.startswith("lightning_patches: LIGHTNING_PATCHES: there is no patch, group or issue called 'nonsense'.")
    assert line.endswith("Nothing is patched.")


def test_own_commands_apply_no_patches(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    program = TOY.replace("del os.environ", "0 and os.environ") + "startup.on_import()" + VALUES
    assert check(program, tmp_path) == STOCK


@pytest.mark.parametrize("toggle", ["1", "all,strict", "off"])
def test_missing_lightning_raises_the_usual_error(tmp_path: Path, toggle: str) -> None:
    program = """
import lightning_patches
for name in ("lightning", "pytorch_lightning", "lightning_fabric"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error, error.name)
print(lightning_patches.report(), lightning_patches.report(), lightning_patches.deactivate())
"""
    result = python(program, tmp_path, LIGHTNING_PATCHES=toggle)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "No module named 'lightning' lightning",
        "No module named 'pytorch_lightning' pytorch_lightning",
        "No module named 'lightning_fabric' lightning_fabric",
        "[] [] []",
    ]


@pytest.mark.parametrize("way", ["import", "site"])
def test_broken_dependency_is_reported(way: str, tmp_path: Path) -> None:
    """The program runs unpatched, with one message about it."""
    if way == "site":
        start_with_us(tmp_path)
    write_lightning(tmp_path)
    broken_wrapt(tmp_path)
    result = python("import lightning_patches\n" * (way == "import") + VALUES, tmp_path, LIGHTNING_PATCHES="1")
    assert (result.returncode, result.stdout) == (0, STOCK + "\n")
    assert result.stderr.count("\n") == result.stderr.count("nothing is patched (wrapt is broken here); `") == 1


@pytest.mark.parametrize(
    "stderr",
    ["None", "open('/dev/full', 'w')", "(lambda f: (f.close(), f)[1])(open(os.devnull, 'w'))", "object()"],
    ids=["none", "full", "closed", "no file"],
)
@pytest.mark.parametrize("toggle", ["1", "nonsense"])
def test_unusable_stderr_does_not_stop_the_import(tmp_path: Path, stderr: str, toggle: str) -> None:
    write_lightning(tmp_path)
    program = (
        TOY
        + f"sys.stderr = {stderr}\nstartup.hooks.install(startup._Activation(None, tolerant=True))"
        + VALUES
        + "os._exit(0)"
    )
    program = program.replace("os._exit(0)", "sys.stdout.flush(); os._exit(0)")
    assert check(program, tmp_path, LIGHTNING_PATCHES=toggle) == (DEFAULT if toggle == "1" else STOCK)


def test_deactivated_package_stays_off(tmp_path: Path) -> None:
    """For example for a process that the program starts."""
    write_lightning(tmp_path)
    program = TOY + "startup.on_import()\nimport lightning.pytorch\nos.environ['LIGHTNING_PATCHES'] = '1'" + VALUES
    assert check(program + "print(startup.is_settled())", tmp_path, LIGHTNING_PATCHES="0").splitlines() == [
        STOCK,
        "True",
    ]


def test_package_can_be_switched_off_and_on_before_the_import(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    armed = "sum(type(f).__name__ == '_Finder' for f in sys.meta_path)"
    program = (
        TOY
        + f"""
startup.on_import(); lightning_patches.activate(); lightning_patches.activate()
print({armed})
print(lightning_patches.deactivate(), {armed})
from lightning.pytorch.subject import Base, compute
print(compute(3))
lightning_patches.activate()
import lightning.pytorch.subject as subject
print(subject.compute(3), compute(3), lightning_patches.deactivate(), subject.compute(3))
"""
    )
    assert check(program, tmp_path).splitlines() == ["1", "[] 0", "6", "60 60 [] 6"]


def test_import_of_lightning_leaves_garbage_collection_unchanged(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    program = (
        TOY
        + """
import gc
before = gc.isenabled(), gc.get_threshold()
seen, fire = [], startup._activate_now
startup._activate_now = lambda *arguments: (seen.append((gc.isenabled(), gc.get_threshold())), fire(*arguments))
startup.on_import()
import lightning.pytorch.subject
print(seen == [before], before == (gc.isenabled(), gc.get_threshold()), lightning_patches.report()[0].verdict)
"""
    )
    assert check(program, tmp_path) == "True True applied"


def test_selection_that_is_not_a_string_raises_type_error() -> None:
    program = "import lightning_patches\nlightning_patches.activate(['19813'])"
    done = python(program)
    assert done.returncode == 1
    assert "TypeError: activate() takes a text such as 'default,-19813', not ['19813']" in done.stderr


def test_import_works_when_sys_argv_has_no_strings(tmp_path: Path) -> None:
    assert check("import sys; sys.argv = [None]; import lightning_patches; print('well')") == "well"


def test_verdicts_follow_activation_import_and_deactivation(tmp_path: Path) -> None:
    write_lightning(tmp_path)
    program = (
        TOY
        + """
def verdicts():
    print(*(e.verdict for e in lightning_patches.report()))
verdicts()
startup.on_import(); verdicts()
import lightning; verdicts()
import lightning.pytorch.subject; verdicts()
lightning_patches.activate("all"); verdicts()
lightning_patches.deactivate(); verdicts()
"""
    )
    assert check(program, tmp_path).splitlines() == [
        "disabled disabled",
        "pending disabled",
        "pending disabled",
        "applied disabled",
        "applied applied",
        "disabled disabled",
    ]


def test_report_names_a_broken_toggle(tmp_path: Path) -> None:
    start_with_us(tmp_path)
    write_lightning(tmp_path, source=AFFECTED)
    program = TOY.replace('["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"', '["NOTHING"] = ""').replace("del os", "0 and os")
    assert check(program + "print(lightning_patches.report()[0].reason)", tmp_path, LIGHTNING_PATCHES="nonsense") == (
        "not selected by nonsense, which is invalid"
    )


SLOW_IMPORT = """
import faulthandler, os, sys, threading, time
faulthandler.dump_traceback_later(100, exit=True)
{before}
def slow(event, args):  # a slow file system, in that thread only
    if event == "open" and threading.current_thread() is other and str(args[0]).endswith((".py", ".pyc")):
        started.set()
        time.sleep(0.05)
started = threading.Event()
other = threading.Thread(target=lambda: __import__({module!r}), daemon=True)
sys.addaudithook(slow)
other.start()
assert started.wait(60)
import lightning.pytorch.subject as subject
other.join()
print(subject.compute(3))
os._exit(0 if sys.stdout.flush() is None else 1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["wrapt", "packaging.version", "importlib.metadata"])
@pytest.mark.parametrize("way", ["import", "site"])
def test_concurrent_import_of_a_dependency_works(tmp_path: Path, way: str, module: str) -> None:
    """The shim waits for that import, so it must not hold Python's import lock, for which the import waits."""
    write_lightning(tmp_path)
    setup = "import os\n" + TOY_SITE if way == "site" else ""
    (tmp_path / "sitecustomize.py").write_text(setup)
    before = "" if way == "site" else TOY_SITE
    assert check(SLOW_IMPORT.format(before=before, module=module), tmp_path, LIGHTNING_PATCHES="1") == "60"


@pytest.mark.parametrize(
    "options", [["-m", "lightning_patches"], ["-mlightning_patches"], ["-Bm", "lightning_patches"]]
)
def test_own_command_is_recognized_in_every_form(options: list[str]) -> None:
    """The command must report an invalid LIGHTNING_PATCHES, not end because of it."""
    done = subprocess.run(
        [sys.executable, *options, "list"],
        env={**os.environ, "LIGHTNING_PATCHES": "nonsense", "PYTHONPATH": str(ROOT)}, cwd="/", capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, (options, done.stderr)
    assert "logged-metrics-device" in done.stdout


@pytest.mark.parametrize(
    ("before", "spec", "lost"),
    [
        (None, "second", True),
        ("all", "second", True),
        (None, "default,second", False),
        (None, "quiet,second", False),
        (None, "-second", False),
        (None, "off,second", False),
        (None, "all", False),
        ("off", "second", False),
        ("second", "second", False),
    ],
)
@pytest.mark.parametrize("first", ["", "import lightning.pytorch.subject\n"], ids=["armed", "applied"])
def test_selection_that_drops_patches_is_reported_once(tmp_path, before, spec, lost, first):
    write_lightning(tmp_path)
    program = f"{TOY}startup.on_import()\n{first}lightning_patches.activate({spec!r})\n"
    if lost:
        program += f"lightning_patches.activate('default')\nlightning_patches.activate({spec!r})\n"
    variables = {} if before is None else {"LIGHTNING_PATCHES": before}
    done = python(program, tmp_path, **variables)
    assert done.returncode == 0, done
    printed = [line for line in done.stderr.splitlines() if "replaces" in line]
    expected = (
        f"lightning_patches: activate({spec!r}) replaces the selection: 1 patch is off now. "
        f"activate('default,{spec}') keeps them."
    )
    assert printed == [expected] * lost, done
