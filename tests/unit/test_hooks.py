"""Import hooks: every execution of a module is seen once, and nothing of ours ever reaches the user's import."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lightning_patches import hooks, toggle
from lightning_patches.errors import PatchError
from lightning_patches.patch import Target
from tests.unit.fakes import AFFECTED, FUNCTION, METHOD, ROOT, World, broken, check, forget_lightning, plus, toy
from tests.unit.fakes import write_lightning as write

PRELUDE = """
import os, sys, threading
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
from tests.unit.fakes import *
use_catalogue(toy())
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
from lightning_patches import _startup
_startup.on_import()
"""


@pytest.fixture
def seen(world: World) -> list[tuple[str, bool]]:
    """What the hooks were told of ``lightning.pytorch.subject``."""
    world.install()
    told: list[tuple[str, bool]] = []

    def callback(module: ModuleType, reloaded: bool) -> None:
        assert hasattr(module, "compute")  # the module is whole
        told.append((module.__name__, reloaded))

    hooks.watch("lightning.pytorch.subject", callback)
    return told


NAME = "lightning.pytorch.subject"


def test_each_execution_is_told_once(seen: list[tuple[str, bool]], world: World) -> None:
    assert seen == []
    module = world.load()
    world.load("pytorch.importer")
    assert seen == [(NAME, False)]
    assert importlib.reload(module) is module
    assert seen == [(NAME, False), (NAME, True)]
    forget_lightning()
    assert world.load() is not module
    assert seen == [(NAME, False), (NAME, True), (NAME, False)]


def test_a_module_that_is_there_is_told_at_once(world: World) -> None:
    world.install()
    module = world.load()
    told: list[tuple[Any, bool]] = []
    hooks.watch(NAME, lambda *what: told.append(what))
    assert told == [(module, False)]


def test_a_second_callback_takes_the_place_of_the_first(seen: list[tuple[str, bool]], world: World) -> None:
    told: list[tuple[Any, bool]] = []
    hooks.watch(NAME, lambda *what: told.append(what))
    module = world.load()
    assert (told, seen) == ([(module, False)], [])


def test_watching_again_after_unwatching_is_told_once(seen: list[tuple[str, bool]], world: World) -> None:
    told: list[tuple[Any, bool]] = []
    for _ in range(3):
        hooks.unwatch_all()
        hooks.watch(NAME, lambda *what: told.append(what))
    module = world.load()
    assert told == [(module, False)]
    hooks.unwatch_all()
    importlib.reload(module)
    assert told == [(module, False)]


def test_modules_keep_their_own_loader(seen: list[tuple[str, bool]], world: World) -> None:
    for _ in range(2):
        module = world.load()
        assert type(module.__loader__) is importlib.machinery.SourceFileLoader
        assert module.__spec__ is not None
        assert type(module.__spec__.loader) is importlib.machinery.SourceFileLoader
        importlib.reload(module)
        assert type(module.__loader__) is importlib.machinery.SourceFileLoader
        forget_lightning()


@pytest.mark.parametrize("stand_in", [None, ModuleType("without a spec"), object()], ids=["blocked", "bare", "object"])
def test_strange_entries_in_sys_modules(world: World, monkeypatch: pytest.MonkeyPatch, stand_in: Any) -> None:
    namespace = world.install()
    monkeypatch.setitem(sys.modules, NAME, stand_in)
    monkeypatch.setattr(hooks, "_registered", set())
    patcher = world.activate(toy())
    assert patcher.verdict(toy(), namespace).verdict == ("pending" if stand_in is None else "failed")


# ---------------------------------------------------------------- errors of ours


def test_a_raising_callback_does_not_reach_the_import(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def callback(module: ModuleType, reloaded: bool) -> None:
        raise ZeroDivisionError("a bug of ours")

    world.install()
    hooks.watch(NAME, callback)
    assert world.load().compute(3) == 6
    said = capsys.readouterr().err
    assert f"internal error while patching {NAME}; it is left as it is" in said
    assert "ZeroDivisionError: a bug of ours" in said


def test_a_raising_builder_does_not_reach_the_import(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.install()
    world.activate(toy(Target(FUNCTION, broken)), toy(Target(METHOD, plus("!")), name="bystander"))
    module = world.load()
    assert module.compute(3) == 6
    assert module.Base().method(1) == "base 1!"
    said = capsys.readouterr().err.splitlines()
    assert "lightning_patches: toy is not applied: RuntimeError: this builder is broken" in said
    assert len(said) == 2  # and the line that says what is applied


def test_strict_lets_it_through_each_time(world: World) -> None:
    def callback(module: ModuleType, reloaded: bool) -> None:
        raise PatchError("wanted")

    world.install()
    hooks.watch(NAME, callback)
    for _ in range(3):
        with pytest.raises(PatchError, match="wanted"):
            world.load()
        assert NAME not in sys.modules
    hooks.unwatch_all()
    assert world.load().compute(3) == 6


def test_an_error_of_the_module_itself_is_the_users(seen: list[tuple[str, bool]], world: World) -> None:
    file = world.root / "lightning" / "pytorch" / "subject.py"
    file.write_text("raise ImportError('a dependency is missing')\n")
    with pytest.raises(ImportError, match="a dependency is missing"):
        world.load()
    assert seen == []
    file.write_text(AFFECTED)
    importlib.invalidate_caches()
    world.load()
    assert seen == [(NAME, False)]


# ---------------------------------------------------------------- patches over executions


def test_reload_keeps_the_patch(world: World) -> None:
    world.install()
    patcher = world.activate(toy(FUNCTION, METHOD))
    module = world.load()
    for _ in range(3):
        old = module.compute, module.Base
        importlib.reload(module)
        assert module.compute is not old[0]
        assert module.Base is not old[1]
        assert (module.compute(3), module.Base().method(1)) == (60, "base 1" * 10)
    assert patcher.deactivate() == []
    assert (module.compute(3), module.Base().method(1)) == (6, "base 1")


def test_reload_keeps_all_layers(world: World) -> None:
    world.install()
    patcher = world.activate(
        toy(Target("pytorch.subject:other", plus(" one")), name="one"),
        toy(Target("pytorch.subject:other", plus(" two")), name="two"),
    )
    module = world.load()
    importlib.reload(module)
    assert module.other() == "other one two"
    patcher.deactivate()
    assert module.other() == "other"


def test_an_import_anew_is_patched(world: World) -> None:
    world.install()
    patcher = world.activate(toy(FUNCTION, METHOD))
    first = world.load()
    forget_lightning()
    second = world.load()
    assert first is not second
    assert (second.compute(3), second.Base().method(1)) == (60, "base 1" * 10)
    assert patcher.deactivate() == []
    for module in (first, second):
        assert (module.compute(3), module.Base().method(1)) == (6, "base 1")


def test_a_module_of_another_name_is_not_touched(world: World) -> None:
    world.install()
    (world.root / "lightning_subject.py").write_text(AFFECTED)
    world.activate(toy())
    assert importlib.import_module("lightning_subject").compute(3) == 6
    del sys.modules["lightning_subject"]


def test_python_dash_m(tmp_path: Path) -> None:
    """``runpy`` asks the loader for code, which a module that is watched must still give."""
    write(tmp_path)
    (tmp_path / "lightning" / "pytorch" / "__main__.py").write_text(
        "from lightning.pytorch.subject import compute\nprint(compute(3))\n"
    )
    printed = check(PRELUDE + "import runpy; runpy.run_module('lightning.pytorch', run_name='__main__')", tmp_path)
    assert printed == "60"


# ---------------------------------------------------------------- threads


def test_two_threads_import_at_once(tmp_path: Path) -> None:
    write(tmp_path, namespace="lightning")
    write(tmp_path, namespace="pytorch_lightning")
    for file in tmp_path.glob("*/**/subject.py"):
        file.write_text("import time; time.sleep(0.05)\n" + AFFECTED)
    program = """
import importlib
start, failures, values = threading.Barrier(8), [], []
def work(name):
    start.wait()
    try:
        values.append(importlib.import_module(name + ".importer").compute(3))
    except BaseException as error:
        failures.append(repr(error))
names = ["lightning.pytorch", "lightning.fabric", "pytorch_lightning", "lightning_fabric"] * 2
threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join(60)
print(failures, sorted(values), [e.verdict for e in __import__("lightning_patches").report()])
"""
    setup = PRELUDE.replace("toy()", "toy(FUNCTION, 'fabric.subject:compute')")
    assert check(setup + program, tmp_path) == "[] [60, 60, 60, 60, 60, 60, 60, 60] ['applied', 'applied']"


def test_activation_waits_for_a_module_that_another_thread_is_importing(tmp_path: Path) -> None:
    write(tmp_path, source="import slow\n" + AFFECTED)
    (tmp_path / "slow.py").write_text(
        "import sys\nsys.reached.set()\nassert sys.go_on.wait(60)\nimport time; time.sleep(0.2)\n"
    )
    program = (
        PRELUDE.replace("_startup.on_import()", "")
        + """
import importlib
sys.reached, sys.go_on, values = threading.Event(), threading.Event(), []
importer = threading.Thread(
    target=lambda: values.append(importlib.import_module("lightning.pytorch.importer")), daemon=True
)
importer.start()
assert sys.reached.wait(60)  # lightning.pytorch.subject is half executed: it has no function yet
sys.go_on.set()
import lightning_patches
lightning_patches.activate()
importer.join(60)
print(values[0].compute(3), [e.verdict for e in lightning_patches.report()])
"""
    )
    assert check(program, tmp_path) == "60 ['applied']"


# ---------------------------------------------------------------- a second copy of this package


SECOND_COPY = """
first = sys.modules["lightning_patches"]
def take_out(name):
    return {key: sys.modules.pop(key) for key in list(sys.modules) if key.partition(".")[0] == name}
kept = take_out("lightning_patches")
take_out("tests")
sys.path.insert(0, COPY)
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
from tests.unit.fakes import *
use_catalogue(toy())
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
import lightning_patches as second
assert second.__file__ != first.__file__, second.__file__
second.activate()
from lightning.pytorch.importer import compute
import lightning.pytorch.subject as subject
print(compute(3), [e.verdict for e in first.report()], [e.verdict for e in second.report()])
"""


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_second_copy_of_this_package_does_not_patch_twice(tmp_path: Path, order: str) -> None:
    """Such as a vendored one; and a reload finder of each must not ask the other's forever."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "lightning_patches", copy / "lightning_patches")
    write(tmp_path)
    program = PRELUDE + ("import lightning.pytorch.subject\n" if order == "after" else "")
    program += f"COPY = {str(copy)!r}\n" + SECOND_COPY
    program += """
import importlib
importlib.reload(subject)
print(subject.compute(3))
print(second.deactivate(), first.deactivate(), subject.compute(3))
"""
    assert check(program, tmp_path).splitlines() == ["60 ['applied'] ['applied']", "60", "[] [] 6"]


def test_patches_are_selected_anew_while_modules_wait(world: World) -> None:
    world.install()
    patches = toy(name="first"), toy("fabric.subject:compute", name="second")
    patcher = world.patcher(*patches)
    for spec in ("first", "off", "second", "first,second", "second"):
        patcher.activate(toggle.parse(spec, patches))
    assert (world.load().compute(3), world.load("fabric.subject").compute(3)) == (6, 60)
