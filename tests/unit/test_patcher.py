"""Applying and undoing patches: the values of the patched attributes, and the identity of these objects."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import itertools
import pickle
import py_compile
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, Callable
from unittest import mock

import pytest

from lightning_patches.engine import attributes, distributions, gate, plan, references, swaps, toggle, verdicts
from lightning_patches.engine import patcher as patcher_module
from lightning_patches.engine.functions import NAMES, ORIGINAL
from lightning_patches.engine.patcher import Patcher
from lightning_patches.errors import PatchError
from lightning_patches.patch import Need, Target, no_code
from tests.unit.fakes import (
    AFFECTED,
    FIXED,
    FUNCTION,
    METHOD,
    World,
    added,
    broken,
    forget_lightning,
    plus,
    times_ten,
    toy,
)


def verdict(patcher: Patcher, name: str = "toy", namespace: str = "lightning") -> gate.Decision:
    found = distributions.find(namespace)
    assert found is not None
    return verdicts.verdict(patcher, next(p for p in patcher.catalogue if p.name == name), found)


def raw(module: ModuleType, attribute: str) -> Any:
    *path, last = attribute.split(".")
    owner: Any = module
    for name in path:
        owner = vars(owner)[name]
    return vars(owner).get(last)


def contents(module: ModuleType) -> dict[str, Any]:
    """Every object in a module and its classes, by name."""
    found = dict(vars(module))
    for name, value in vars(module).items():
        if isinstance(value, type):
            found.update({f"{name}.{key}": item for key, item in vars(value).items()})
    return found


def test_replacement_has_the_metadata_of_the_original(world: World) -> None:
    world.install()
    module = world.load()
    original = module.compute
    original.extra = "kept"
    world.activate(toy())
    assert module.compute is not original
    assert type(module.compute) is FunctionType
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        assert getattr(module.compute, attribute) == getattr(original, attribute), attribute
    assert inspect.signature(module.compute) == inspect.signature(original)
    assert module.compute.extra == "kept"
    assert getattr(module.compute, ORIGINAL) is original
    assert getattr(module.compute, NAMES) == ("toy",)
    assert not hasattr(module.compute, "__wrapped__")
    unpickled = pickle.loads(
        pickle.dumps(module.compute.__annotations__)
    )  # like an attribute of a wrapper that cloudpickle includes
    assert type(unpickled) is dict and unpickled == original.__annotations__


@pytest.mark.parametrize(
    ("attribute", "kind", "expected"),
    [
        ("Base.method", FunctionType, "base 1!"),
        ("Base.static", staticmethod, "static 1!"),
        ("Base.klass", classmethod, "Base 1!"),
        ("Base.prop", property, "prop!"),
    ],
)
def test_descriptors_keep_their_type(world: World, attribute: str, kind: type, expected: str) -> None:
    world.install()
    module = world.load()
    before = raw(module, attribute)
    patcher = world.activate(toy(Target(f"pytorch.subject:{attribute}", plus("!"))))
    assert type(raw(module, attribute)) is kind
    instance = module.Base()
    value = getattr(instance, attribute.partition(".")[2])
    assert (value if kind is property else value(1)) == expected
    if kind is classmethod:
        assert module.Child.klass(1) == "Child 1!"
    if kind is property:
        instance.prop = "new"
        assert instance.set_to == "new" and module.Base.prop.__doc__ == "A property."
    assert patcher.deactivate() == []
    assert raw(module, attribute) is before


ADDS = Target("pytorch.subject:Child.added", added, adds=True)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("attribute", ["added", "Child.added"])
def test_attribute_is_added_and_removed(world: World, attribute: str, when: str) -> None:
    world.install()
    if when == "before":
        world.load()
    patcher = world.activate(toy(Target(f"pytorch.subject:{attribute}", added, adds=True)))
    module = world.load()
    function = raw(module, attribute)
    assert function(None) == "added in lightning"
    assert (function.__module__, function.__qualname__) == (module.__name__, attribute)
    assert verdict(patcher).verdict == "applied"
    assert patcher.deactivate() == []
    assert raw(module, attribute) is None


def test_added_method_can_call_the_next_one_in_the_mro(world: World) -> None:
    def build(original: Any, namespace: str) -> Any:
        def method(self: Any, x: int) -> str:
            return f"child, {original(self, x)}"

        return method

    world.install()
    module = world.load()
    patcher = world.activate(toy(Target("pytorch.subject:Child.method", build, adds=True)))

    class Mixin(module.Base):  # type: ignore[name-defined, misc]
        def method(self, x: int) -> str:
            return "mixin"

    class Both(module.Child, Mixin):  # type: ignore[name-defined, misc]
        pass

    assert module.Child().method(1) == "child, base 1"
    assert Both().method(1) == "child, mixin"
    assert patcher.deactivate() == []
    assert "method" not in vars(module.Child)  # deleted, not set to a value
    assert module.Child().method(1) == "base 1"


def test_overriding_subclass_takes_precedence(world: World) -> None:
    world.install()
    module = world.load()

    class Before(module.Base):  # type: ignore[name-defined, misc]
        def method(self, x: int) -> str:
            return f"mine {x}"

    world.activate(toy(Target(METHOD, plus("!"))))

    class After(module.Base):  # type: ignore[name-defined, misc]
        def method(self, x: int) -> str:
            return "mine, on top of " + super().method(x)

    assert Before().method(1) == "mine 1"
    assert After().method(1) == "mine, on top of base 1!"
    assert module.Child().method(1) == "base 1!"


def patched_method(world: World, *stock: str) -> tuple[ModuleType, Any]:
    """Return the stand-in, with a patch of ``Base.method`` that acts if all of this code is Lightning's."""

    def build(original: Any, namespace: str) -> Any:
        def method(self: Any, x: Any) -> str:
            return "patched"

        return method

    world.install()
    world.activate(toy(Target(METHOD, build, stock=stock)))
    module = world.load()
    return module, module.Base.method


def must_not_run(*_: Any) -> Any:
    raise AssertionError("the program's code was called")


def test_patch_applies_if_the_named_code_is_lightnings(world: World) -> None:
    module, method = patched_method(world, "self", "x.prop", "x.method", "x.static", "x.klass")
    assert method(module.Base(), module.Child()) == method(self=module.Base(), x=module.Child()) == "patched"
    assert list(inspect.signature(method).parameters) == ["self", "x"]


@pytest.mark.parametrize("name", ["static", "method"])  # the second one is patched
@pytest.mark.parametrize("how", ["overridden", "in the object", "wrapped", "stands in", "as a property"])
def test_original_runs_if_the_program_overrides_the_code(world: World, how: str, name: str) -> None:
    module, method = patched_method(world, f"x.{name}")
    x = module.Base()
    if how == "overridden":
        x = type("Own", (module.Base,), {name: must_not_run})()
    elif how == "in the object":
        setattr(x, name, must_not_run)
    elif how == "wrapped":
        setattr(module.Base, name, functools.wraps(getattr(module.Base, name))(must_not_run))
    elif how == "stands in":
        x = type("Proxy", (), {"__getattr__": must_not_run})()
    else:
        x = type("Own", (module.Base,), {name: property(must_not_run)})()
    assert method(module.Base(), x).startswith("base ")


def test_resolving_a_target_triggers_no_getattr(world: World) -> None:
    module, method = patched_method(world, "x.holder.prop.static")
    x = module.Base()
    x.holder = type("Own", (module.Base,), {"prop": property(must_not_run)})()
    assert method(module.Base(), x).startswith("base ")
    module.Base.prop = property(lambda self: self)
    x.holder = module.Base()
    assert method(module.Base(), x).startswith("base ")


def test_original_runs_for_an_object_of_a_user_class(world: World) -> None:
    module, method = patched_method(world, "x")
    x = type("Own", (module.Base,), {})()
    assert method(module.Base(), x).startswith("base ")
    type(x).__module__ = module.__name__  # pretends to be Lightning's
    assert method(module.Base(), x=x).startswith("base ")


def test_each_namespace_is_patched_or_skipped_separately(world: World) -> None:
    world.install("2.3.3", "lightning")
    world.install("2.4.0", "pytorch_lightning", source=AFFECTED.replace("* scale", "* scale + 0"))
    patcher = world.activate(toy())
    assert world.load(namespace="lightning").compute(3) == 60
    assert world.load(namespace="pytorch_lightning").compute(3) == 6
    assert verdict(patcher).verdict == "applied"
    assert verdict(patcher, namespace="pytorch_lightning").verdict == "fixed-upstream"


def test_builder_gets_the_namespace(world: World) -> None:
    def build(original: Any, namespace: str) -> Any:
        return lambda *args, **kwargs: namespace

    world.install("2.3.3", "lightning")
    world.install("2.3.3", "pytorch_lightning")
    world.activate(toy(Target(FUNCTION, build), Target("fabric.subject:compute", build)))
    for namespace, part in itertools.product(("lightning", "pytorch_lightning"), ("pytorch", "fabric")):
        assert world.load(f"{part}.subject", namespace).compute(1) == namespace


@pytest.mark.parametrize("when", ["before", "after"])
def test_aliases_are_replaced_and_restored(world: World, when: str) -> None:
    world.install()
    if when == "before":
        world.load("pytorch.importer")
    patcher = world.activate(toy())
    importer, subject = world.load("pytorch.importer"), world.load()
    assert importer.compute is importer.again is subject.compute
    assert importer.compute(3) == 60
    assert patcher.deactivate() == []
    assert importer.compute is importer.again is subject.compute
    assert importer.compute(3) == 6


def test_aliases_are_replaced_when_a_patch_is_added_later(world: World) -> None:
    world.install()
    patches = toy(), toy(name="second", after=("toy",))
    patcher = world.activate(*patches, spec="toy")
    importer = world.load("pytorch.importer")
    assert importer.compute(3) == importer.again(3) == 60
    patcher.activate(toggle.parse("all", patches))
    assert importer.compute(3) == importer.again(3) == 600
    assert patcher.deactivate() == []
    assert importer.compute(3) == importer.again(3) == 6


@pytest.mark.parametrize("name", ["__main__", "helper"])
def test_copies_in_modules_of_the_user_are_replaced(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """``from lightning... import f`` in a module that was imported before us."""
    world.install()
    module = sys.modules.get(name) or ModuleType(name)
    original = world.load().compute
    monkeypatch.setattr(module, "mine", original, raising=False)
    monkeypatch.setitem(sys.modules, name, module)
    patcher = world.activate(toy())
    assert module.mine is world.load().compute is not original
    assert patcher.deactivate() == []
    assert module.mine is world.load().compute is original


def test_copies_of_the_replacement_are_restored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.install()
    patcher = world.activate(toy())
    helper = ModuleType("helper")
    helper.compute = world.load().compute  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    assert patcher.deactivate() == []
    assert helper.compute(3) == 6  # type: ignore[attr-defined]


def holder(function: Any, method: Any) -> ModuleType:
    """Return a user's module that refers to functions of Lightning in other places than an import."""
    helper = ModuleType("helper")
    code = "class Keeper:\n    kept = staticmethod(function)\nTABLE = {'f': function}\nLIST = [1, method]\n"
    exec(code, {**vars(helper), "function": function, "method": method}, vars(helper))
    return helper


HELD = ["helper.Keeper.kept", "helper.TABLE['f']"]


def test_remaining_references_to_the_original_are_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.install()
    module = world.load()
    monkeypatch.setitem(sys.modules, "helper", holder(module.compute, module.Base.method))
    patcher = world.activate(toy(), toy(Target(METHOD, plus("!")), name="second"))
    first, second = verdicts.entries(patcher)
    assert first.verdict == second.verdict == "applied"
    assert first.reason.startswith(f"in place, but {', '.join(HELD)} still references the original")
    assert second.reason.startswith("in place, but helper.LIST[1] still references the original")


def test_remaining_references_to_the_replacement_are_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.install()
    patcher = world.activate(toy(FUNCTION, METHOD))
    module = world.load()
    monkeypatch.setitem(sys.modules, "helper", holder(module.compute, module.Base.method))
    assert patcher.deactivate() == [*HELD, "helper.LIST[1]"]
    assert module.compute(3) == 6


class StandsIn:
    """An object whose attributes must not be read, like a web framework's proxy, or ``torch.distributed.reduce_op``."""

    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise RuntimeError("not now")


def test_search_for_references_reads_no_attribute_of_objects(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.install()
    patcher = world.activate(toy(FUNCTION, METHOD))
    module = world.load()
    helper = holder(module.compute, module.Base.method)
    helper.first, helper.Keeper.other = StandsIn(), StandsIn()  # type: ignore[attr-defined]
    helper.TABLE["other"] = StandsIn()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    (entry,) = verdicts.entries(patcher)
    assert entry.verdict == "applied"
    assert patcher.deactivate() == [*HELD, "helper.LIST[1]"]


@pytest.fixture
def lazy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """An optional dependency that would be imported on first use, and is never used."""
    (tmp_path / "optional.py").write_text("raise ImportError('there is no libfoo here')")
    spec = importlib.util.spec_from_file_location("optional", tmp_path / "optional.py")
    assert spec is not None and spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "optional", module)
    spec.loader.exec_module(module)
    yield module
    with pytest.raises(ImportError):
        getattr(module, "anything")  # noqa: B009  # it was there, and lazy, all the time


def test_search_for_references_triggers_no_lazy_import(world, monkeypatch, lazy):
    world.install()
    module = world.load()
    monkeypatch.setitem(sys.modules, "helper", holder(module.compute, module.Base.method))
    monkeypatch.setitem(sys.modules, "standing_in", StandsIn())  # type: ignore[arg-type]
    patcher = world.activate(toy())
    (entry,) = verdicts.entries(patcher)
    assert "helper.Keeper.kept" in entry.reason
    assert patcher.deactivate() == []
    assert module.compute(3) == 6


def test_module_that_forbids_setattr_is_updated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"{name} is read-only")

    world.install()
    closed = Closed("closed")
    vars(closed)["compute"] = world.load().compute
    monkeypatch.setitem(sys.modules, "closed", closed)
    patcher = world.activate(toy())
    assert vars(closed)["compute"](3) == 60
    assert patcher.deactivate() == []
    assert vars(closed)["compute"](3) == 6


def test_search_for_references_ignores_classes_and_modules_that_raise(world, monkeypatch):
    class Meta(type):
        @property
        def __module__(cls) -> str:  # type: ignore[override]
            raise RuntimeError("not now")

    world.install()
    module = world.load()
    helper = holder(module.compute, module.Base.method)
    helper.strange = Meta("strange", (), {})  # type: ignore[attr-defined]
    nameless = ModuleType("nameless")
    del nameless.__name__
    nameless.TABLE = {"f": module.compute}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "helper", helper)
    monkeypatch.setitem(sys.modules, "nameless", nameless)
    patcher = world.activate(toy())
    (entry,) = verdicts.entries(patcher)
    assert all(place in entry.reason for place in (*HELD, "nameless.TABLE['f']"))
    assert patcher.deactivate() == []


LAYERS = (
    toy(Target(METHOD, plus(" one")), name="one"),
    toy(Target(METHOD, plus(" two")), name="two"),
    toy(Target(METHOD, plus(" three")), name="three"),
)


@pytest.mark.parametrize("order", list(itertools.permutations(("one", "two", "three"))), ids="-".join)
def test_layers_of_a_target_can_be_added_and_removed_in_any_order(world: World, order: tuple[str, ...]) -> None:
    world.install()
    module = world.load()
    original = raw(module, "Base.method")
    patcher = world.patcher(*LAYERS)
    wanted: list[str] = []
    for change in (*((name, True) for name in order), *((name, False) for name in order)):
        name, joins = change
        wanted = [*wanted, name] if joins else [other for other in wanted if other != name]
        patcher.activate(toggle.parse(",".join(wanted) or "off", LAYERS))
        expected = " ".join(["base 1", *(p.name for p in LAYERS if p.name in wanted)])
        assert module.Base().method(1) == expected
        for patch in LAYERS:
            assert verdict(patcher, patch.name).verdict == ("applied" if patch.name in wanted else "disabled")
    assert raw(module, "Base.method") is original


def test_failed_layer_keeps_the_others(world: World) -> None:
    world.install()
    patcher = world.activate(LAYERS[0], toy(Target(METHOD, broken), name="two"), LAYERS[2])
    assert world.load().Base().method(1) == "base 1 one three"
    assert verdict(patcher, "two") == gate.Decision("failed", "RuntimeError: this builder is broken")
    assert verdict(patcher, "one").verdict == verdict(patcher, "three").verdict == "applied"


def test_patch_with_an_import_error_is_skipped(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.install()
    record = toy(METHOD, name="two")._replace(targets=(Target(METHOD, no_code),), module="subject.no_such_file")
    patcher = world.activate(toy(), record)
    module = world.load()
    assert (module.compute(3), module.Base().method(1)) == (60, "base 1")
    reason = "ModuleNotFoundError: No module named 'subject'"
    assert patcher.decision(record, distributions.find("lightning")) == gate.Decision("failed", reason)
    assert f"two is not applied: {reason}" in capsys.readouterr().err


def test_requested_patch_that_the_release_does_not_need_is_named(world, capsys):
    world.install()
    fixed = toy(name="fixed", affected=(">=2.0.0,<2.1.0",), fixed_in="2.1.0")
    patcher = world.patcher(toy(), fixed)
    patcher.activate(toggle.parse("toy,fixed", (toy(), fixed)))
    world.load()
    printed = capsys.readouterr().err
    assert printed.count("fixed is not applied: lightning 2.3.3 has the official fix") == 1
    assert "toy is not applied" not in printed


def test_requested_patch_that_a_later_item_removes_is_not_named(world, capsys):
    world.install()
    other = toy(METHOD, name="other")
    patcher = world.patcher(toy(), other)
    patcher.activate(toggle.parse("toy,other,-other", (toy(), other)))
    assert world.load().compute(3) == 60
    printed = capsys.readouterr().err
    assert "1 fix " in printed and "not applied" not in printed and "internal error" not in printed


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("second", ["pytorch.subject:other", "fabric.subject:other"])
def test_patch_is_applied_completely_or_not_at_all(world: World, when: str, second: str) -> None:
    world.install()
    if when == "before":
        world.load(), world.load("fabric.subject")
    patcher = world.activate(toy(Target(FUNCTION, times_ten), Target(second, broken)), toy(METHOD, name="bystander"))
    module, fabric = world.load(), world.load("fabric.subject")
    assert module.compute(3) == 6
    assert not hasattr(module.compute, NAMES)
    assert not hasattr(fabric.other, NAMES)
    assert verdict(patcher).verdict == "failed"
    assert verdict(patcher, "bystander").verdict == "applied"
    assert patcher.deactivate() == []


@pytest.mark.parametrize(
    ("target", "value", "reason"),
    [
        (FUNCTION, None, f"{FUNCTION} does not exist"),
        (METHOD, None, "has no Base"),
        (FUNCTION, 42, "is not a function"),
        (FUNCTION, object, "is not a function"),
        (FUNCTION, property(None), "is not a function"),
        (ADDS, lambda self: "mine", "already exists"),
    ],
    ids=["no-function", "no-class", "number", "class", "property", "added"],
)
def test_target_that_is_not_as_expected_is_left_unchanged(world: World, target: Any, value: Any, reason: str) -> None:
    world.install()
    module = world.load()
    owner, name = (module.Child, "added") if target is ADDS else (module, "Base" if target == METHOD else "compute")
    delattr(module, name) if value is None else setattr(owner, name, value)
    patcher = world.activate(toy(target, "pytorch.subject:other"))
    assert vars(owner).get(name) is value
    assert verdict(patcher).verdict == "failed" and reason in verdict(patcher).reason
    assert not hasattr(module.other, NAMES)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("is_there", [True, False])
def test_optional_target_is_skipped_without_a_message_when_its_class_is_left_out(world, is_there, when, capsys):
    source = f"{AFFECTED}\nif {is_there}:\n\n    class Column:\n        def text(self):\n            return 'text'\n"
    optional = Target("pytorch.subject:Column.text", plus("!"), optional=True)
    patches = toy(optional, FUNCTION), toy(optional, name="alone", after=("toy",))
    world.install(source=source)
    if when == "before":
        world.load()
    patcher = world.patcher(*patches)
    world.know(*patches, releases={"2.3.3": source, "2.4.0": FIXED})
    patcher.activate(toggle.parse("all,strict", patches))
    module = world.load()
    assert module.compute(3) == 60
    assert not is_there or module.Column().text() == "text!!"
    for name in ("toy", "alone"):
        made = verdict(patcher, name)
        assert made.verdict == "applied" and (name == "toy" or is_there == (made.reason == "in place"))
    assert "not applied" not in capsys.readouterr().err
    assert patcher.deactivate() == []


@pytest.mark.parametrize(
    "build",
    [lambda original, _: original, lambda *_: functools.partial(print), lambda *_: None],
    ids=["the original", "a partial", "nothing"],
)
def test_builder_must_return_a_new_function(world: World, build: Any) -> None:
    world.install()
    patcher = world.activate(toy(Target(FUNCTION, build)))
    assert world.load().compute(3) == 6
    assert not hasattr(world.load().compute, NAMES)
    assert "built no new function" in verdict(patcher).reason


def test_undo_restores_the_same_objects(world: World) -> None:
    world.install()
    modules = [world.load("pytorch.importer"), world.load(), world.load("fabric.subject")]
    before = [contents(module) for module in modules]
    patch = toy(FUNCTION, METHOD, "pytorch.subject:Base.static", "pytorch.subject:Base.klass", ADDS)
    patcher = world.activate(patch, *LAYERS)
    assert [contents(module) for module in modules] != before
    assert patcher.deactivate() == []
    for module, old in zip(modules, before):
        now = contents(module)
        assert now.keys() == old.keys()
        assert all(now[name] is old[name] for name in old if not name.endswith(("__dict__", "__weakref__")))
    assert not patcher.active


def test_undo_restores_sys_meta_path(world: World) -> None:
    world.install()
    before = [finder for finder in sys.meta_path if type(finder).__module__ != "wrapt.importer"]
    patcher = world.activate(toy())
    assert any(type(finder).__module__ == "lightning_patches.engine.hooks" for finder in sys.meta_path)
    patcher.deactivate()
    assert [finder for finder in sys.meta_path if type(finder).__module__ != "wrapt.importer"] == before


def test_undo_may_be_repeated_and_reversed(world: World) -> None:
    world.install()
    patcher = world.activate(toy())
    assert patcher.deactivate() == patcher.deactivate() == Patcher(()).deactivate() == []
    module = world.load()
    assert module.compute(3) == 6
    patcher.activate(toggle.parse("1", patcher.catalogue))
    assert module.compute(3) == 60


def test_foreign_wrapper_is_unwrapped(world: World) -> None:
    world.install()
    patcher = world.activate(toy())
    module = world.load()
    ours = module.compute

    @functools.wraps(ours)
    def theirs(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs) + 1

    assert verdict(patcher) == gate.Decision("applied", "in place")
    module.compute = theirs
    line = theirs.__code__.co_firstlineno
    assert verdict(patcher) == gate.Decision("applied", f"in place, inside a wrapper of other code: {__file__}:{line}")
    assert patcher.deactivate() == ["lightning.pytorch.subject.compute"]
    assert module.compute is theirs


def test_foreign_replacement_is_reported(world: World) -> None:
    world.install()
    patcher = world.activate(toy(FUNCTION, METHOD))
    module = world.load()
    theirs = module.Base.method = lambda self, x: "theirs"
    made = verdict(patcher)
    assert made.verdict == "failed"
    assert METHOD in made.reason
    assert patcher.deactivate() == ["lightning.pytorch.subject.Base.method"]
    assert module.Base.method is theirs
    assert module.compute(3) == 6  # the rest is undone anyway


def test_temporary_foreign_replacement_leaves_no_patch(world: World) -> None:
    """A test suite deactivates inside ``mock.patch``, which restores our function at its end."""
    world.install()
    patcher = world.activate(toy())
    module = world.load()
    original = getattr(module.compute, ORIGINAL)
    with mock.patch.object(module, "compute") as theirs:
        for _ in range(2):
            assert patcher.deactivate() == ["lightning.pytorch.subject.compute"]
        patcher.activate(toggle.parse("1", patcher.catalogue))
        assert module.compute is theirs
        assert verdict(patcher).verdict == "drifted"
        patcher.deactivate()
    assert module.compute(3) == 60
    assert patcher.deactivate() == []
    assert module.compute is original
    patcher.activate(toggle.parse("1", patcher.catalogue))
    assert module.compute(3) == 60
    assert patcher.deactivate() == []
    assert module.compute is original


def test_removed_replacement_is_reported_as_failed(world: World) -> None:
    world.install()
    module = world.load()
    original = module.compute
    patcher = world.activate(toy())
    module.compute = original
    assert verdict(patcher).verdict == "failed"
    assert patcher.deactivate() == []
    assert module.compute is original


@pytest.mark.parametrize("keeps_traces", [True, False])
def test_second_activation_does_not_patch_a_wrapper_of_the_replacement(world: World, keeps_traces: bool) -> None:
    world.install()
    patcher = world.activate(toy())
    module = world.load()
    ours = module.compute

    def theirs(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs) + 1

    module.compute = functools.wraps(ours)(theirs) if keeps_traces else theirs
    patcher.activate(toggle.parse("1", patcher.catalogue))
    assert module.compute is theirs
    assert module.compute(3) == 61


def test_second_patch_is_not_applied_over_foreign_code(world: World) -> None:
    world.install()
    patcher = world.patcher(*LAYERS)
    patcher.activate(toggle.parse("one", LAYERS))
    module = world.load()
    theirs = module.Base.method = lambda self, x: "theirs"
    patcher.activate(toggle.parse("one,two", LAYERS))
    assert module.Base.method is theirs
    assert "was replaced by other code" in verdict(patcher, "two").reason


@pytest.mark.parametrize("keeps_traces", [True, False])
@pytest.mark.parametrize("target", [FUNCTION, METHOD])
def test_fix_of_the_user_is_kept(world, capsys, target, keeps_traces):
    world.install()
    module = world.load()
    owner, attribute = (module, "compute") if target == FUNCTION else (module.Base, "method")
    original = vars(owner)[attribute]

    def hotfix(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    mine = functools.wraps(original)(hotfix) if keeps_traces else hotfix
    setattr(owner, attribute, mine)
    patcher = world.activate(toy(target))
    assert vars(owner)[attribute] is mine
    made = verdict(patcher)
    assert made.verdict == "drifted"
    assert f"other code has already replaced {target}: " in made.reason
    assert f"{__file__}:{hotfix.__code__.co_firstlineno}" in made.reason
    assert "remove that code, or let it run after `import lightning_patches`" in made.reason
    assert capsys.readouterr().err.count("toy is not applied: other code") == 1
    assert patcher.deactivate() == []
    with pytest.raises(PatchError, match="other code has already replaced"):
        patcher.activate(toggle.parse("all,strict", patcher.catalogue))


def test_decorators_of_lightning_are_unwrapped(world: World) -> None:
    source = "from contextlib import contextmanager\n" + AFFECTED.replace(
        "def other", "@contextmanager\ndef context():\n    yield 1\n\n\ndef other"
    )
    patch = toy(Target("pytorch.subject:context", times_ten))
    world.install(source=source)
    world.know(patch, releases={"2.3.3": source})
    patcher = Patcher([patch])
    for late in (False, True):
        if late:
            world.load()
        patcher.activate(toggle.parse("all", [patch]))
        world.load()
        assert verdict(patcher).verdict == "applied"
        assert patcher.deactivate() == []
        forget_lightning()


def test_second_activation_changes_nothing(world: World) -> None:
    world.install()
    patcher = world.activate(toy(FUNCTION, METHOD))
    module = world.load()
    before = contents(module)
    for _ in range(2):
        patcher.activate(toggle.parse("1", patcher.catalogue))
    assert contents(module) == before  # the same functions: a program that imported one can still pickle it
    assert module.compute(3) == 60


def test_selection_adds_and_removes_patches(world: World) -> None:
    world.install()
    patches = toy(name="first"), toy(Target(METHOD, plus("!")), name="second")
    patcher = world.patcher(*patches)
    patcher.activate(toggle.parse("first", patches))
    module = world.load()
    ours = module.compute
    assert verdict(patcher, "second") == gate.Decision("disabled", "not selected by first")
    for spec, values in (("first,second", (60, "base 1!")), ("-first", (6, "base 1!")), ("off", (6, "base 1"))):
        patcher.activate(toggle.parse(spec, patches))
        assert (module.compute(3), module.Base().method(1)) == values
        assert (module.compute is ours) is ("first," in spec)


@pytest.mark.parametrize("version", ["unknown", "main"])
def test_unreadable_version_is_not_patched(world: World, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    world.install(version)
    patcher = world.activate(toy(Target(FUNCTION, times_ten, since="2.2.0")), toy(name="other"))
    assert world.load().compute(3) == 6
    assert verdict(patcher).verdict == "drifted"
    printed = capsys.readouterr().err.splitlines()
    assert [line for line in printed if "has an invalid version" in line] == printed
    assert len(printed) == 1  # for both


@pytest.mark.parametrize(
    ("version", "spec", "rank", "printed"),
    [
        ("2.3.3", "all", "0", "lightning_patches: lightning 2.3.3: 2 fixes ('lightning-patches status' lists them)\n"),
        ("2.3.3", "all", "1", ""),
        ("2.3.3", "quiet", "0", ""),
        ("2.4.0", "all", "0", ""),
    ],
)
def test_one_line_is_printed_by_rank_zero_if_there_are_patches(
    world: World, capsys: Any, monkeypatch: pytest.MonkeyPatch, version: str, spec: str, rank: str, printed: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    world.install(version)
    world.activate(toy(FUNCTION, name="first"), toy(METHOD, name="second"), spec=spec)
    world.load("pytorch.importer")
    assert world.load().compute(3) == (60 if version == "2.3.3" else 6)
    assert capsys.readouterr().err == printed


def test_strict_accepts_a_release_that_needs_no_patch(world: World) -> None:
    world.install("2.4.0", source=AFFECTED.replace("* scale", "* scale + 0"))
    world.activate(toy(), spec="strict")
    assert world.load().compute(3) == 6


@pytest.mark.parametrize("cause", ["drifted", "failed", "not planned"])
def test_strict_ends_the_import_and_every_later_one(world: World, monkeypatch: pytest.MonkeyPatch, cause: str) -> None:
    if cause == "not planned":
        world.install()
        failing_once(monkeypatch, gate, "decide", MemoryError("no more"), 0)
        patcher = world.activate(toy(), spec="strict")
    elif cause == "drifted":
        world.install(source=AFFECTED.replace("* scale", "* scale * 1"))
        patcher = world.activate(toy(), spec="strict")
    else:
        world.install()
        patcher = world.activate(toy(Target(FUNCTION, broken)), spec="strict")
    for _ in range(3):
        with pytest.raises(PatchError, match="toy is not applied"):
            world.load()
        assert "lightning.pytorch.subject" not in sys.modules
    patcher.deactivate()
    assert world.load().compute(3) == 6


def test_strict_ends_the_activation_but_applies_the_rest(world: World) -> None:
    world.install()
    module, fabric = world.load(), world.load("fabric.subject")
    bad, good = toy(Target("fabric.subject:compute", broken), name="bad"), toy(name="good")
    patcher = world.patcher(bad, good)
    with pytest.raises(PatchError, match="bad is not applied: RuntimeError: this builder is broken"):
        patcher.activate(toggle.parse("strict", patcher.catalogue))
    assert (module.compute(3), fabric.compute(3)) == (60, 6)


def test_changed_release_on_disk_is_drifted(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """``pip install`` below a running notebook."""
    world.install("2.5.0", source=FIXED)
    (world.root / "lightning" / "__init__.py").write_text("__version__ = '2.5.0'\n")
    module = world.load()
    world.install("2.3.3")
    (world.root / "lightning" / "__init__.py").write_text("__version__ = '2.3.3'\n")
    patches = toy(), toy(METHOD, name="second"), toy(name="unaffected", affected=(">=2.0.0,<2.1.0",), fixed_in="2.1.0")
    patcher = world.activate(*patches)
    assert module.compute(3) == 6
    reason = (
        "this process has imported lightning 2.5.0, and 2.3.3 was installed later: restart it (in a notebook, restart "
        "the kernel)"
    )
    assert verdict(patcher) == verdict(patcher, "second") == gate.Decision("drifted", reason)
    assert verdict(patcher, "unaffected").verdict == "fixed-upstream"
    printed = capsys.readouterr().err.splitlines()
    assert printed == [f"lightning_patches: 2 patches are not applied: {reason}"]
    with pytest.raises(PatchError, match="restart the kernel"):
        patcher.activate(toggle.parse("all,strict", patches))


def test_changed_file_on_disk_is_drifted(world: World) -> None:
    world.install(source=AFFECTED.replace("value * scale", "value * scale * 1"))
    module = world.load()
    world.install(source=AFFECTED)
    patcher = world.activate(toy(FUNCTION), toy(METHOD, name="second"))
    assert module.compute(3) == 6
    made = verdict(patcher)
    assert made.verdict == "drifted"
    assert f"the file of {FUNCTION} has changed since Lightning was imported: restart Python" in made.reason
    assert verdict(patcher, "second").verdict == "applied"  # this function has not changed


def test_constant_set_in_another_order_is_unchanged(tmp_path: Path) -> None:
    """The order in a .pyc file differs from the one in the code that Python has just compiled (8, 0)."""
    path = tmp_path / "subject.py"
    path.write_text("def compute(x):\n    return x in {8, 0}\n")
    spec = importlib.util.spec_from_file_location("lightning.pytorch.subject", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), vars(module))
    py_compile.compile(str(path), doraise=True)
    attributes.check_is_original(module, toy().targets[0], module.compute, compare=True)


def test_code_that_changes_before_its_import_is_drifted(world: World) -> None:
    world.install()
    patcher = world.activate(toy())
    world.load("pytorch")
    assert verdict(patcher).verdict == "pending"
    world.install(source=AFFECTED.replace("value * scale", "value * scale * 1"))
    assert world.load().compute(3) == 6
    made = verdict(patcher)
    assert made.verdict == "drifted"
    assert "since Lightning was imported: restart Python" in made.reason


def failing_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: BaseException, at: int) -> None:
    original, calls = getattr(owner, name), itertools.count()

    def fail(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == at:
            raise error
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, fail)


PAIR = toy(FUNCTION, METHOD), toy("pytorch.subject:other", name="second")


@pytest.mark.parametrize("spec", ["all", "all,strict"])
@pytest.mark.parametrize(
    ("owner", "name"), [(gate, "decide"), (attributes, "resolve"), (attributes.PatchedAttribute, "compose")]
)
@pytest.mark.parametrize("at", [0, 1])
def test_interruption_leaves_no_partial_patch(world, monkeypatch, owner, name, at, spec):
    """For example Ctrl-C in a notebook, after which the user runs the cell again."""
    world.install()
    failing_once(monkeypatch, owner, name, KeyboardInterrupt(), at)
    patcher = world.activate(*PAIR, spec=spec)
    with pytest.raises(KeyboardInterrupt):
        world.load()
    module = world.load()
    assert (module.compute(3), len(module.Base().method(1)), len(module.other())) == (60, 60, 50)
    assert [verdict(patcher, patch.name).verdict for patch in PAIR] == ["applied"] * 2
    assert patcher.deactivate() == []


class InterruptedAt:
    """Raises KeyboardInterrupt once, before the given line of the code that applies or undoes patches."""

    FILES = {module.__file__ for module in (references, attributes, plan, swaps, patcher_module)}

    def __init__(self, step: int) -> None:
        self.steps_left = step
        self.before = sys.gettrace()

    def __enter__(self) -> InterruptedAt:
        sys.settrace(self.trace)
        return self

    def __exit__(self, kind: Any, *_: Any) -> bool:
        sys.settrace(self.before)
        return kind is KeyboardInterrupt

    @property
    def interrupted(self) -> bool:
        return self.steps_left < 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self.FILES:
            return None
        if event == "line":
            self.steps_left -= 1
            if self.steps_left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.trace


THREE = (
    toy(FUNCTION, METHOD),
    toy("pytorch.subject:Base.static", Target("pytorch.subject:Base.added", added, adds=True), name="second"),
    toy(FUNCTION, name="third", after=("toy",)),
)


def everything(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """Import the stand-in. Returns a function that returns all objects in its modules, by identity."""
    world.install()
    modules = [world.load(), world.load("pytorch.importer")]
    monkeypatch.setattr(references, "all_modules", lambda: modules)  # otherwise most steps are in other packages

    def found() -> dict[str, Any]:
        return {f"{module.__name__}.{name}": id(one) for module in modules for name, one in contents(module).items()}

    return found


def test_deactivate_continues_after_an_interruption_at_any_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = everything(world, monkeypatch)
    patcher, originals = world.patcher(*THREE), found()
    for step in itertools.count():
        patcher.activate(toggle.parse("all", THREE))
        assert found() != originals
        with InterruptedAt(step) as run:
            patcher.deactivate()
        assert patcher.deactivate() == [], step
        assert found() == originals, step
        assert not list(patcher.swaps), step
        if not run.interrupted:
            break
    assert step > 100


def test_activate_continues_after_an_interruption_at_any_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = everything(world, monkeypatch)
    patcher, originals = world.patcher(*THREE), found()
    subject = sys.modules["lightning.pytorch.subject"]
    importer = sys.modules["lightning.pytorch.importer"]
    for step in itertools.count():
        with InterruptedAt(step) as run:
            patcher.activate(toggle.parse("all", THREE))
        if step % 2:
            patcher.activate(toggle.parse("all", THREE))
            assert [verdict(patcher, patch.name).verdict for patch in THREE] == ["applied"] * 3, step
            assert subject.compute(3) == importer.compute(3) == importer.again(3) == 600, step
        assert patcher.deactivate() == [], step
        assert found() == originals, step
        if not run.interrupted:
            break
    assert step > 100


def test_planning_error_fails_only_its_patch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.install()
    failing_once(monkeypatch, gate, "decide", MemoryError("no more"), 0)
    patcher = world.activate(*PAIR)
    module = world.load()
    assert (module.compute(3), len(module.other())) == (6, 50)
    assert verdict(patcher) == gate.Decision("failed", "MemoryError: no more")
    assert verdict(patcher, "second").verdict == "applied"


def test_replacement_inside_a_foreign_wrapper_is_reported(world: World) -> None:
    world.install()
    patches = toy(name="first"), toy("pytorch.subject:other", name="second")
    patcher = world.activate(*patches)
    module = world.load()
    original, ours = getattr(module.compute, ORIGINAL), module.compute

    @functools.wraps(ours)
    def theirs(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs)

    module.compute = theirs
    patcher.activate(toggle.parse("-first", patches))
    assert module.compute(3) == 60
    made = verdict(patcher, "first")
    assert made.verdict == "applied"
    assert made.reason == f"still applied, although not selected: other code keeps it in {FUNCTION}"
    for _ in range(2):
        assert patcher.deactivate() == ["lightning.pytorch.subject.compute"]
    assert module.compute(3) == 60
    patcher.activate(toggle.parse("all", patches))
    assert verdict(patcher, "first").verdict == verdict(patcher, "second").verdict == "applied"
    assert module.compute is theirs
    module.compute = ours  # they are removed again
    assert patcher.deactivate() == []
    assert module.compute is original


def without_source(world: World, how: str) -> None:
    for file in list(world.root.rglob("*.py")):
        if how == "bytecode":
            py_compile.compile(str(file), cfile=str(file) + "c")
            file.unlink()
    if how == "archive":
        with zipfile.ZipFile(world.root / "bundle.zip", "w") as archive:
            for file in sorted((world.root / "lightning").rglob("*")):
                archive.write(file, file.relative_to(world.root))
        shutil.rmtree(world.root / "lightning")
        sys.path.insert(0, str(world.root / "bundle.zip"))
    importlib.invalidate_caches()


@pytest.mark.parametrize("how", ["bytecode", "archive"])
def test_lightning_without_its_source_is_not_patched(world, capsys, monkeypatch, how):
    monkeypatch.setattr(sys, "path", [*sys.path])
    world.install()
    without_source(world, how)
    patches = toy(), toy(METHOD, name="second"), toy(name="unaffected", affected=(">=2.4.0",), fixed_in=None)
    patcher = world.activate(*patches)
    assert world.load().compute(3) == 6
    found = verdicts.entries(patcher)
    assert [(entry.version, entry.verdict) for entry in found] == [
        ("2.3.3", "drifted"),
        ("2.3.3", "drifted"),
        ("2.3.3", "not-affected"),
    ]
    assert "has no source files (.py) on disk" in found[0].reason
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed == f"lightning_patches: 2 patches are not applied: {found[0].reason}"
    patcher.deactivate()
    forget_lightning()
    patcher.activate(toggle.parse("all,strict", patches))
    for _ in range(2):
        with pytest.raises(PatchError, match="has no source files"):
            world.load()


LIBRARY = "class Store:\n    def wait(self, keys):\n        pass\n\n\n__version__ = '2.2.2'\n"
IMPORTS_IT = "import needed_library\n" + AFFECTED
IMPORTING = {"2.3.3": IMPORTS_IT, "2.4.0": IMPORTS_IT.replace("* scale", "* scale + 0")}
MISSING = [
    (Need("needed_library:Store.check"), "needed_library.Store.check"),
    (Need("needed_library:Store.wait", "timeout"), "needed_library.Store.wait(timeout=...)"),
    (Need("needed_library.more:Store"), "needed_library.more.Store"),
]
THERE = [Need("needed_library:Store.wait"), Need("needed_library:Store.wait", "keys")]


@pytest.fixture
def library(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A Lightning that imports the needed package, as it imports torch."""
    Path(world.root, "needed_library.py").write_text(LIBRARY)
    world.install(source=IMPORTS_IT)
    monkeypatch.delitem(sys.modules, "needed_library", raising=False)
    return world


def activate(world: World, need: Need, spec: str = "all") -> Patcher:
    patch = toy(needs=(need,))
    patcher = world.patcher(patch)
    world.know(patch, releases=IMPORTING)
    patcher.activate(toggle.parse(spec, (patch,)))
    return patcher


@pytest.mark.parametrize(("need", "words"), MISSING)
def test_missing_need_is_reported_and_nothing_changes(library: World, need: Need, words: str) -> None:
    patcher = activate(library, need)
    (before,) = verdicts.entries(patcher)
    assert before.verdict == "pending" and f"needs {words}, which is checked then" in before.reason
    assert "needed_library" not in sys.modules, "asking for verdicts imports nothing"
    assert library.load().compute(3) == 6
    (after,) = verdicts.entries(patcher)
    assert (after.verdict, after.reason) == (
        "not-supported",
        f"needs {words}, which the installed needed_library 2.2.2 does not have",
    )


@pytest.mark.parametrize("need", THERE)
def test_existing_need_is_accepted(library: World, need: Need) -> None:
    patcher = activate(library, need)
    assert library.load().compute(3) == 60
    assert verdicts.entries(patcher)[0].verdict == "applied"


def test_missing_need_is_an_error_under_strict(library: World) -> None:
    activate(library, MISSING[0][0], "strict")
    with pytest.raises(PatchError, match="toy is not applied: needs needed_library.Store.check"):
        library.load()


def test_missing_need_of_a_deselected_patch_is_ignored_under_strict(library: World) -> None:
    activate(library, MISSING[0][0], "strict,-toy")
    assert library.load().compute(3) == 6
