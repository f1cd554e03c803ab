"""Import hooks: each execution of a module is seen once, and no error of the shim reaches the user's import."""

from __future__ import annotations

import copy
import importlib
import importlib.machinery
import importlib.util
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import wrapt

from lightning_patches.engine import hooks, toggle
from lightning_patches.engine.patcher import Patcher
from lightning_patches.engine.verdicts import entries, verdict
from lightning_patches.errors import PatchError
from lightning_patches.patch import Target
from tests.support.run import check
from tests.unit.fakes import AFFECTED, FUNCTION, METHOD, ROOT, World, forget_lightning, plus, toy
from tests.unit.fakes import write_lightning as write

PRELUDE = """
import os, sys, threading
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
from tests.unit.fakes import *
use_catalogue(toy())
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
from lightning_patches.activation import startup
startup.on_import()
"""


class Watcher:
    """Records the calls for ``lightning.pytorch.subject``, and if the module was complete at each call."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []

    def before(self, module: ModuleType) -> None:
        self.note("before", module)

    def after(self, module: ModuleType) -> None:
        self.note("after", module)

    def note(self, when: str, module: ModuleType) -> None:
        if module.__name__ == NAME:
            self.told.append((when, hasattr(module, "compute")))


def arming(patcher: Patcher) -> Callable[[], Patcher]:
    """Return a function that activates all patches when Lightning is imported."""

    def armed() -> Patcher:
        patcher.activate(toggle.parse("1", patcher.catalogue), caller=armed)
        return patcher

    return armed


NAME = "lightning.pytorch.subject"
ANEW = [("before", False), ("after", True)]
AGAIN = [("before", True), ("after", True)]


@pytest.fixture
def watcher(world: World) -> Watcher:
    world.install()
    made = Watcher()
    hooks.install(lambda: made)
    return made


def test_each_execution_is_reported_once(watcher: Watcher, world: World) -> None:
    assert watcher.told == []
    module = world.load()
    world.load("pytorch.importer")
    assert watcher.told == ANEW
    assert importlib.reload(module) is module
    assert watcher.told == ANEW + AGAIN
    forget_lightning()
    assert world.load() is not module
    assert watcher.told == ANEW + AGAIN + ANEW


def test_module_executed_after_removal_is_not_patched(watcher: Watcher, world: World) -> None:
    spec = importlib.util.find_spec(NAME)
    assert spec is not None and spec.loader is not None
    hooks.remove()
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (module.compute(3), watcher.told) == (6, [])


def test_finder_executes_no_code_of_the_patches(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python holds its import lock, which every import of every thread needs."""
    world.install()
    hooks.install(lambda: pytest.fail("called by a finder"))
    world.root.joinpath("lightning", "__init__.py").write_text("")
    finder = next(finder for finder in sys.meta_path if finder is hooks._finder)
    for name, path in (("lightning", None), ("lightning.pytorch", [str(world.root / "lightning")])):
        spec = finder.find_spec(name, path)
        assert spec is not None and spec.loader is not None
        assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)  # other tools check this
        assert spec.loader.get_filename(name) == spec.origin


def test_removal_during_an_import_of_another_thread_skips_no_finder(world, monkeypatch):
    """Python iterates over the list while another thread deactivates. Here a finder in the list deactivates."""
    hooks.install(lambda: None)
    spec = importlib.machinery.ModuleSpec("only_the_next_finder_knows", importlib.machinery.BuiltinImporter)

    class Finder:
        def __init__(self, find: Callable[[], Any]) -> None:
            self.find = find

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            return self.find() if name == spec.name else None

    monkeypatch.setattr(
        sys, "meta_path", [hooks._finder, Finder(hooks.remove), Finder(lambda: spec), importlib.machinery.PathFinder]
    )
    assert importlib.util.find_spec(spec.name) is spec
    assert hooks._finder not in sys.meta_path


def test_loader_is_wrapped_once(watcher: Watcher, world: World) -> None:
    """wrapt's finder calls all finders again. If another tool registers a hook for the same module, its finder may come
    before or after the shim's."""
    theirs: list[str] = []
    wrapt.register_post_import_hook(lambda module: theirs.append(module.__name__), NAME)
    for _ in range(2):
        world.load()
        sys.meta_path.append(sys.meta_path.pop(sys.meta_path.index(hooks._finder)))
        sys.meta_path.append(sys.meta_path.pop(sys.meta_path.index(importlib.machinery.PathFinder)))
        forget_lightning()
        wrapt.register_post_import_hook(lambda module: theirs.append(module.__name__), NAME)
    world.load()
    assert watcher.told == ANEW * 3
    assert theirs == [NAME] * 3


def test_modules_keep_their_loader(watcher: Watcher, world: World) -> None:
    for _ in range(2):
        module = world.load()
        assert type(module.__loader__) is importlib.machinery.SourceFileLoader
        assert module.__spec__ is not None
        assert type(module.__spec__.loader) is importlib.machinery.SourceFileLoader
        importlib.reload(module)
        assert type(module.__loader__) is importlib.machinery.SourceFileLoader
        forget_lightning()


def test_copied_loader_is_the_original(watcher: Watcher, world: World) -> None:
    spec = importlib.util.find_spec("lightning.pytorch")
    assert spec is not None
    for made in (copy.copy(spec.loader), copy.deepcopy(spec).loader, pickle.loads(pickle.dumps(spec.loader))):
        assert type(made) is importlib.machinery.SourceFileLoader
        assert made.get_filename() == spec.origin


def test_finder_that_equals_everything_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        def find_spec(self, *_: Any) -> None:
            return None

    monkeypatch.setattr(sys, "meta_path", [Equal(), *sys.meta_path])
    world.install()
    world.activate(toy())
    assert world.load().compute(3) == 60


def test_removed_finder_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example by a tool that restores an earlier ``sys.meta_path``."""
    namespace, before = world.install(), list(sys.meta_path)
    patcher = world.activate(toy())
    sys.meta_path[:] = before
    made = verdict(patcher, toy(), namespace)
    assert made.verdict == "failed" and "to patch pytorch.subject, call `lightning_patches.activate()`" in made.reason
    patcher.activate(toggle.parse("all", patcher.catalogue))
    assert verdict(patcher, toy(), namespace).verdict == "pending"
    assert world.load().compute(3) == 60


@pytest.mark.parametrize("stand_in", [None, ModuleType("without a spec"), object()], ids=["blocked", "bare", "object"])
def test_invalid_entry_in_sys_modules_raises_nothing(world, monkeypatch, stand_in):
    namespace = world.install()
    monkeypatch.setitem(sys.modules, NAME, stand_in)
    patcher = world.activate(toy())
    assert verdict(patcher, toy(), namespace).verdict == ("pending" if stand_in is None else "failed")


OUTER, INNER = "lightning.pytorch.outer", NAME
"""Two modules with a target each, of which the first imports the second."""
TARGETS = ("pytorch.outer:compute", FUNCTION)


def nested(world: World, code: str) -> None:
    """Write a release in which the inner of the two modules runs ``code`` while it is imported."""
    world.install(source=AFFECTED + code)
    (world.root / "lightning" / "pytorch" / "outer.py").write_text(f"from {INNER} import other\n" + AFFECTED)
    importlib.invalidate_caches()


def watched(name: str) -> bool:
    """True if the shim's loader wraps the loader of a module that is imported now."""
    __import__(name.rpartition(".")[0])
    spec = importlib.util.find_spec(name)
    assert spec is not None
    return hasattr(spec.loader, "lightning_patches_finder")


def test_only_modules_with_a_target_get_a_loader(world: World) -> None:
    nested(world, "")
    world.activate(toy(*TARGETS))
    world.load("pytorch")
    names = [f"lightning.pytorch.{name}" for name in ("importer", "outer", "subject")]
    assert [name for name in names if watched(name)] == [OUTER, INNER]


def test_stack_depth_of_a_patched_module_is_unchanged(world: World) -> None:
    nested(
        world,
        "import sys\nframe, STACK = sys._getframe(), []\nwhile frame: STACK.append(frame); frame = frame.f_back\n",
    )
    depths = []
    for patcher in (world.patcher(), world.activate(toy(*TARGETS))):
        importlib.import_module(OUTER)
        depths.append(len(sys.modules[INNER].STACK))
        sys.modules[INNER].STACK.clear()
        patcher.deactivate()
        forget_lightning()
    assert depths[1] == depths[0]


def test_replaced_exec_module_is_called(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    nested(world, "")
    executed = []
    loader = importlib.machinery.SourceFileLoader
    original = loader.exec_module

    def exec_module(self: Any, module: ModuleType) -> None:
        executed.append(module.__name__)
        original(self, module)

    monkeypatch.setattr(loader, "exec_module", exec_module)
    world.activate(toy(*TARGETS))
    assert world.load("pytorch.outer").compute(3) == 60
    assert executed[-2:] == [OUTER, INNER]


@pytest.mark.parametrize("spec", ["all", "all,strict"])
@pytest.mark.parametrize("error", ["ZeroDivisionError", "ModuleNotFoundError", "KeyboardInterrupt"])
def test_traceback_of_a_module_has_no_frame_of_the_package(world: World, spec: str, error: str) -> None:
    nested(world, f"raise {error}('of its own')\n")
    shown = []
    for patcher in (world.patcher(), world.activate(toy(*TARGETS), spec=spec)):
        with pytest.raises(BaseException, match="of its own") as caught:
            importlib.import_module(OUTER)
        files = [entry.frame.code.raw.co_filename for entry in caught.traceback]
        shown.append(files[files.index(str(world.root / "lightning" / "pytorch" / "outer.py")) :])
        assert not [file for file in files if file.startswith(str(ROOT / "lightning_patches"))]
        patcher.deactivate()
    assert shown[1] == shown[0] and len(shown[1]) == 2


def test_internal_error_does_not_reach_the_import(world, capsys, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    world.install()
    monkeypatch.setattr(Patcher, "_patch", fail)
    world.activate(toy())
    assert world.load().compute(3) == 6
    message = capsys.readouterr().err
    assert f"internal error while patching {NAME}, which is not patched" in message
    assert "ZeroDivisionError: a bug of ours" in message
    forget_lightning()
    world.activate(toy(), spec="all,strict")
    with pytest.raises(PatchError, match="is not patched: ZeroDivisionError: a bug of ours"):
        world.load()


def test_error_of_the_module_is_raised(watcher: Watcher, world: World) -> None:
    file = world.root / "lightning" / "pytorch" / "subject.py"
    file.write_text("raise ImportError('a dependency is missing')\n")
    with pytest.raises(ImportError, match="a dependency is missing"):
        world.load()
    assert watcher.told == [("before", False)]
    file.write_text(AFFECTED)
    importlib.invalidate_caches()
    world.load()
    assert watcher.told == [("before", False), *ANEW]


def test_reload_keeps_the_patch(world: World) -> None:
    world.install()
    layers = [toy(Target("pytorch.subject:other", plus(f" {name}")), name=name) for name in ("one", "two")]
    patcher = world.activate(toy(FUNCTION, METHOD), *layers)
    module = world.load()
    for _ in range(3):
        old = module.compute, module.Base
        importlib.reload(module)
        assert module.compute is not old[0]
        assert module.Base is not old[1]
        assert (module.compute(3), module.Base().method(1)) == (60, "base 1" * 10)
        assert module.other() == "other one two"
    assert patcher.deactivate() == []
    assert (module.compute(3), module.Base().method(1), module.other()) == (6, "base 1", "other")


def test_module_that_is_imported_anew_is_patched(world: World) -> None:
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


def test_other_module_is_not_touched(world: World) -> None:
    world.install()
    (world.root / "lightning_subject.py").write_text(AFFECTED)
    world.activate(toy())
    assert importlib.import_module("lightning_subject").compute(3) == 6
    del sys.modules["lightning_subject"]


def test_module_with_a_target_runs_by_python_dash_m(tmp_path: Path) -> None:
    """``runpy`` gets the code from the loader, so the wrapped loader must return it."""
    write(tmp_path)
    (tmp_path / "lightning" / "pytorch" / "__main__.py").write_text(
        "from lightning.pytorch.subject import compute\nprint(compute(3))\n"
    )
    printed = check(PRELUDE + "import runpy; runpy.run_module('lightning.pytorch', run_name='__main__')", tmp_path)
    assert printed == "60"


def test_concurrent_imports_are_patched(tmp_path: Path) -> None:
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
        PRELUDE.replace("startup.on_import()", "")
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


def test_activation_during_an_import_waits_for_no_import(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread holds the lock of its module. Python could mistake that for a deadlock."""
    monkeypatch.setattr(hooks, "wait_for_imports", lambda: pytest.fail("waits"))
    world.install()
    hooks.install(arming(world.patcher(toy())))
    assert world.load().compute(3) == 60


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
def test_second_copy_of_the_package_does_not_patch_twice(tmp_path: Path, order: str) -> None:
    """For example a vendored copy. The finders of both must not call each other forever."""
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


@pytest.mark.parametrize("spec", ["all", "all,strict"])
def test_failing_hook_of_another_tool_is_harmless(world: World, spec: str) -> None:
    def theirs(module: ModuleType) -> None:
        raise RuntimeError("their bug")

    world.install()
    wrapt.register_post_import_hook(theirs, NAME)
    world.activate(toy(), spec=spec)
    with pytest.raises(RuntimeError, match="their bug"):
        world.load()
    assert world.load().compute(3) == 60


def test_editable_installation_with_a_finder_is_patched(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Editable:
        """A finder like that of setuptools."""

        @classmethod
        def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
            if name not in ("pytorch_lightning", "lightning_fabric"):
                return None
            directory = world.root / "elsewhere" / name
            locations = [str(directory)]
            return importlib.util.spec_from_file_location(
                name, directory / "__init__.py", submodule_search_locations=locations
            )

    write(world.root / "elsewhere", namespace="pytorch_lightning")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Editable])
    patches = toy(), toy("fabric.subject:compute", name="second")
    patcher = world.activate(*patches)
    assert [entry.verdict for entry in entries(patcher)] == ["pending", "pending"]
    world.load("pytorch", namespace="pytorch_lightning")
    assert [entry.verdict for entry in entries(patcher)] == ["pending", "pending"]
    for part in ("pytorch", "fabric"):
        assert world.load(f"{part}.subject", namespace="pytorch_lightning").compute(3) == 60
    assert [entry.verdict for entry in entries(patcher)] == ["applied", "applied"]
    patcher.deactivate()
