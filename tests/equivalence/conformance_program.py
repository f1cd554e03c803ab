"""Runs the conformance checks of all patches in one release, and prints what fails as JSON.

    python conformance_program.py lightning        # with the release, and this repository, on PYTHONPATH

Started by ``test_conformance.py``. Users and tools do more with Lightning's functions than call them: they pickle,
inspect and override them. Each check covers one such use, whose result must be the same as without the patch.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import json
import logging
import os
import pickle
import pkgutil
import sys
import types
import typing
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

NAMESPACE = (sys.argv[1:] or [os.environ.get("SCENARIO_NAMESPACE", "lightning")])[0]

os.environ["LIGHTNING_PATCHES"] = "all,quiet"
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from tests.support import with_rich  # noqa: F401

META_PATH = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("lightning_patches")]

import lightning_patches
from lightning_patches.engine import distributions, functions, gate
from lightning_patches.patch import Patch, Target
from lightning_patches.patches import all_patches

ABSENT: Any = "(absent)"
FAILURES: list[dict[str, str]] = []


@dataclass
class Swapped:
    """A patched target. ``raw`` is the entry of the owner's ``__dict__``, which may be a descriptor."""

    patch: Patch
    target: Target
    owner: Any
    name: str
    patched: Any
    original: Any = ABSENT
    overridden_when_patched: Optional[bool] = None

    def __str__(self) -> str:
        return f"{self.patch.name} {self.target.location}"

    def fail(self, check: str, detail: str) -> None:
        fail(check, detail, self.patch.name, self.target.location)

    @property
    def function(self) -> Any:
        return function_of(self.patched)

    @property
    def original_function(self) -> Any:
        return function_of(self.original)

    @property
    def replaces(self) -> bool:
        return self.original is not ABSENT


def function_of(raw: Any) -> Any:
    if hasattr(raw, "cache_clear"):
        return raw.__wrapped__
    return getattr(raw, "__func__", None) or getattr(raw, "fget", None) or raw


def inherited(swapped: Swapped) -> Any:
    """Return the method of a base class if the patch has added an override."""
    owner = swapped.owner
    return function_of(getattr(super(owner, owner), swapped.name, None)) if isinstance(owner, type) else None


def fail(check: str, detail: str, patch: str = "", target: str = "") -> None:
    FAILURES.append({"patch": patch, "target": target, "check": check, "detail": detail})


CHECKS: list[Callable[[Swapped], Optional[str]]] = []
"""Each returns a problem or None. They run after everything is undone, when ``original`` is in its place again."""
LIVE_CHECKS: list[Callable[[Swapped], Optional[str]]] = []
"""The same, but they run while the patch is in place."""


@CHECKS.append
def signature_is_kept(swapped: Swapped) -> Optional[str]:
    stock = swapped.original_function if swapped.replaces else inherited(swapped)
    if not isinstance(stock, types.FunctionType):
        return None
    ours, theirs = inspect.signature(swapped.function), inspect.signature(stock)
    return None if ours == theirs else f"{ours} in place of {theirs}"


@CHECKS.append
def every_call_of_the_original_is_accepted(swapped: Swapped) -> Optional[str]:
    """Each argument can be given by position or by name, and must reach the parameter of the same name."""
    stock = inherited(swapped) if swapped.target.adds else swapped.original_function
    if not isinstance(stock, types.FunctionType):
        return None
    raw, original = (functions.MISSING, None) if swapped.target.adds else (swapped.original, stock)
    built = swapped.patch.with_code(swapped.target)[1].build(original, NAMESPACE)
    functions.copy_metadata(built, raw, swapped.owner, swapped.name, ())  # copies the defaults
    vars(built).clear()  # without the copied signature
    theirs, ours = inspect.signature(stock), inspect.signature(built)
    for arguments, named in calls(theirs):
        try:
            taken = ours.bind(*arguments, **named).arguments
        except TypeError as error:
            return f"{ours} does not accept {arguments} {named} of {theirs}: {error}"
        for name, value in taken.items():
            if ours.parameters[name].kind not in VARIABLE and value != name:
                return f"{ours} takes {value} of {theirs} as {name}"
    return None


@CHECKS.append
def added_method_calls_the_next_one(swapped: Swapped) -> Optional[str]:
    """A method below it in the MRO, such as that of a mixin, must be called as without the patch."""
    if not swapped.target.adds or not isinstance(inherited(swapped), types.FunctionType):
        return None
    built = swapped.patch.with_code(swapped.target)[1].build(None, NAMESPACE)
    return None if "original" in built.__code__.co_freevars else "it does not call `original`"


VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def calls(signature: inspect.Signature) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield arguments of calls: the first parameters by position, the others by name, with and without optional ones.

    The value of each argument is the name of its parameter. Python passes the object itself by position.
    """
    parameters = [one for one in signature.parameters.values() if one.kind not in VARIABLE]
    first = sum(one.kind is one.POSITIONAL_ONLY or one.name in ("self", "cls") for one in parameters)
    for chosen in (parameters, [one for one in parameters if one.default is one.empty]):
        by_position = sum(one.kind is not one.KEYWORD_ONLY for one in chosen)
        for number in range(first, by_position + 1):
            names = [one.name for one in chosen]
            yield names[:number], {name: name for name in names[number:]}


@CHECKS.append
def names_and_docstring_are_kept(swapped: Swapped) -> Optional[str]:
    if not swapped.replaces:
        is_class = isinstance(swapped.owner, type)
        module = swapped.owner.__module__ if is_class else swapped.owner.__name__
        qualname = f"{swapped.owner.__qualname__}.{swapped.name}" if is_class else swapped.name
        expected = {"__name__": swapped.name, "__qualname__": qualname, "__module__": module}
        if isinstance(inherited(swapped), types.FunctionType):
            expected["__doc__"] = inherited(swapped).__doc__
    else:
        names = ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__")
        expected = {name: getattr(swapped.original_function, name) for name in names}
    for name, value in expected.items():
        if getattr(swapped.function, name) != value:
            return f"{name} is {getattr(swapped.function, name)!r}, not {value!r}"
    return None


@CHECKS.append
def type_hints_are_kept(swapped: Swapped) -> Optional[str]:
    if not swapped.replaces:
        return None
    ours, theirs = hints(swapped.function), hints(swapped.original_function)
    return None if ours == theirs else f"{ours} in place of {theirs}"


def hints(function: Any) -> Any:
    try:
        return typing.get_type_hints(function)
    except Exception as error:
        return type(error).__name__


@CHECKS.append
def defaults_are_kept(swapped: Swapped) -> Optional[str]:
    """The defaults must be the same if the parameters are."""
    code = getattr(swapped.original_function, "__code__", None)
    if not swapped.replaces or code is None:
        return None
    if parameters(swapped.function.__code__) not in (parameters(code), (), ("self",), ("cls",)):
        return None
    ours, theirs = (
        (getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None))
        for function in (swapped.function, swapped.original_function)
    )
    return None if ours == theirs else f"{ours} in place of {theirs}"


def parameters(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


@CHECKS.append
def attributes_are_kept(swapped: Swapped) -> Optional[str]:
    if not swapped.replaces:
        return None
    lost = {k: v for k, v in vars(swapped.original_function).items() if k != "__wrapped__"}.items() - vars(
        swapped.function
    ).items()
    return f"lost {lost}" if lost else None


@CHECKS.append
def it_is_a_plain_function_in_the_same_descriptor(swapped: Swapped) -> Optional[str]:
    if type(swapped.function) is not types.FunctionType:
        return f"{type(swapped.function).__name__}"
    if swapped.replaces and type(swapped.patched) is not type(swapped.original):
        return f"{type(swapped.patched).__name__} in place of {type(swapped.original).__name__}"
    return None


@CHECKS.append
def it_is_called_in_the_same_way(swapped: Swapped) -> Optional[str]:
    """Coroutine functions and asynchronous generators must keep their type."""
    if not swapped.replaces:
        return None
    for kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction):
        if kind(swapped.function) != kind(swapped.original_function):
            return kind.__name__
    return None


@LIVE_CHECKS.append
def only_jsonargparse_looks_through_it(swapped: Swapped) -> Optional[str]:
    """Only methods of classes that accept keywords have ``__wrapped__``, through which jsonargparse reads them."""
    if not hasattr(swapped.function, "__wrapped__"):
        return None
    owner = swapped.owner
    parameters = inspect.signature(owner.__init__).parameters.values() if inspect.isclass(owner) else ()
    return None if any(one.kind is one.VAR_KEYWORD for one in parameters) else "has __wrapped__"


@LIVE_CHECKS.append
def source_can_be_shown(swapped: Swapped) -> Optional[str]:
    source = inspect.getsource(swapped.function)
    if not source.lstrip().startswith(("def ", "async def ", "@")):
        return f"the source is {source[:80]!r}"
    if inspect.getsourcefile(swapped.function) == sys.modules[swapped.function.__module__].__file__:
        return "the source shown is in Lightning's file"
    return None


@LIVE_CHECKS.append
def deepcopy_is_the_function_itself(swapped: Swapped) -> Optional[str]:
    return None if copy.deepcopy(swapped.function) is swapped.function else "a copy"


@LIVE_CHECKS.append
def a_subclass_that_overrides_it_wins(swapped: Swapped) -> Optional[str]:
    if not isinstance(swapped.owner, type):
        return None
    override = swapped.name
    marker: Any = property(lambda self: "ours") if isinstance(swapped.patched, property) else lambda self: "ours"
    try:
        subclass = types.new_class("Override", (swapped.owner,), exec_body=lambda body: body.update({override: marker}))
    except TypeError as error:
        return f"cannot be subclassed: {error}"
    if inspect.getattr_static(subclass, override) is not marker:
        return "the override is not what the subclass has"
    subclass.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    if override.startswith("__"):
        return None
    value = getattr(subclass.__new__(subclass), override)
    return None if (value if isinstance(marker, property) else value()) == "ours" else "the override is not called"


def pickle_error(swapped: Swapped, raw: Any) -> Optional[str]:
    """Return why the function cannot be pickled by reference, as torch.multiprocessing and Ray do."""
    value = raw.__get__(None, swapped.owner) if isinstance(raw, (staticmethod, classmethod)) else function_of(raw)
    try:
        loaded = pickle.loads(pickle.dumps(value))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if loaded == value else f"loaded as {loaded}"


def is_overridden(swapped: Swapped) -> Optional[bool]:
    """Return Lightning's ``is_overridden`` for a subclass that does not override the method."""
    if not isinstance(swapped.owner, type) or isinstance(swapped.patched, property):
        return None
    helpers = importlib.import_module(distributions.module_name(NAMESPACE, "pytorch.utilities.model_helpers"))
    subclass = types.new_class("Subclass", (swapped.owner,))
    subclass.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
    return bool(helpers.is_overridden(swapped.name, subclass.__new__(subclass), parent=swapped.owner))


def import_everything() -> None:
    """Import every module of the namespace, except those that lack an optional dependency."""
    for package in distributions.PARTS[NAMESPACE].values():
        if importlib.util.find_spec(package) is None:
            continue  # lightning_lite came with 1.x alone
        root = importlib.import_module(package)
        for info in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None):
            if not info.name.endswith("__main__"):
                try:
                    importlib.import_module(info.name)
                except (Exception, SystemExit):
                    continue


def lightning_modules() -> Iterator[types.ModuleType]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in distributions.ROOT_PACKAGES and isinstance(module, types.ModuleType):
            yield module


def snapshot() -> dict[str, Any]:
    """Every object in every module and class of Lightning, by its name."""
    found: dict[str, Any] = {}
    for module in lightning_modules():
        for name, value in vars(module).items():
            found[f"{module.__name__}:{name}"] = value
            if isinstance(value, type) and value.__module__ == module.__name__:
                for key, item in vars(value).items():
                    if not isinstance(item, types.GetSetDescriptorType) and key not in ("__doc__", "_abc_impl"):
                        found[f"{module.__name__}:{name}.{key}"] = item
    return found


def difference(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return sorted(name for name in {*old, *new} if old.get(name, ABSENT) is not new.get(name, ABSENT))


def find_swapped() -> list[Swapped]:
    """Return every target of every patch that the gate accepts, in its current state."""
    namespace = distributions.find(NAMESPACE)
    assert namespace is not None
    found = []
    for entry in lightning_patches.report():
        patch = next(patch for patch in all_patches() if patch.name == entry.patch)
        if entry.namespace != NAMESPACE or gate.decide(patch, namespace).verdict in ("not-affected", "fixed-upstream"):
            continue
        # A patch with a probe may be applied although it is not needed.
        if entry.verdict != "applied" and not (patch.probe is not None and entry.verdict == "not-affected"):
            fail("it is applied", f"{entry.verdict}: {entry.reason}", patch.name)
            continue
        for target in gate.targets_in(patch, namespace):
            owner: Any = sys.modules[distributions.module_name(NAMESPACE, target.module)]
            *path, name = target.attribute.split(".")
            for part in path:
                owner = vars(owner)[part]
            found.append(Swapped(patch, target, owner, name, vars(owner)[name]))
    return found


def check_aliases(when: str, swapped: list[Swapped]) -> None:
    """Check that nothing in Lightning refers to an original, which would be called instead of the replacement."""
    originals = {id(getattr(one.function, functions.ORIGINAL, ABSENT)): one for one in swapped}
    for name, value in snapshot().items():
        one = originals.get(id(function_of(value)))
        if one is not None and value is not ABSENT:
            one.fail(f"no alias of the original is left ({when})", name)


def check_undone(swapped: list[Swapped], pickles: list[Optional[str]], stock: dict[str, Any]) -> None:
    for one in swapped:
        one.original = vars(one.owner).get(one.name, ABSENT)
        if one.replaces == one.target.adds:
            one.fail("undo is exact", "left behind" if one.replaces else "gone")
        if one.replaces and getattr(one.function, functions.ORIGINAL, None) is not one.original_function:
            one.fail("undo is exact", "not the object that stood there")
    for name, value in stock.items():
        if hasattr(function_of(value), functions.NAMES):
            fail("undo is exact", f"{name} is still patched")
    for one, error in zip(swapped, pickles):
        run(CHECKS, one)
        if error is not None and (not one.replaces or pickle_error(one, one.original) is None):
            one.fail("it can be pickled by reference", error)
        if one.overridden_when_patched and not (one.replaces and is_overridden(one)):
            one.fail("Lightning does not take it for an override", "it does")


def check_patched_after_import(swapped: list[Swapped], stock: dict[str, Any]) -> None:
    lightning_patches.activate("all,quiet")
    again = find_swapped()
    if [str(one) for one in again] != [str(one) for one in swapped]:
        fail("it is applied to what is imported already", "other targets than on import")
    check_aliases("patched after import", again)
    for name in difference(stock, patched := snapshot()):
        if not hasattr(function_of(patched[name]), functions.NAMES):
            fail("only targets and their aliases are changed", name)
    undo("patched after import")
    for name in difference(stock, snapshot()):
        fail("undo is exact", f"{name} is not what it was (patched after import)")


def main() -> None:
    import_everything()
    swapped = find_swapped()
    check_aliases("patched on import", swapped)
    for one in swapped:
        run(LIVE_CHECKS, one)
        one.overridden_when_patched = is_overridden(one)
    pickles = [pickle_error(one, one.patched) for one in swapped]
    patched = snapshot()
    lightning_patches.activate("all,quiet")
    for name in difference(patched, snapshot()):
        fail("activation twice is once", f"{name} is another object after the second one")
    undo("patched on import")
    stock = snapshot()
    check_undone(swapped, pickles, stock)
    check_patched_after_import(swapped, stock)
    # Packages that Lightning imports may add finders, as absl does.
    ours = [finder for finder in sys.meta_path if type(finder).__module__.startswith("lightning_patches")]
    finders = [*ours, *(finder for finder in sys.meta_path if finder in META_PATH)]
    if finders != META_PATH:
        fail("undo restores sys.meta_path", repr(finders))
    checked = sorted({one.patch.name for one in swapped})
    print(json.dumps({"checked": checked, "targets": len(swapped), "failures": FAILURES}))


def run(checks: list[Callable[[Swapped], Optional[str]]], one: Swapped) -> None:
    for check in checks:
        try:
            wrong = check(one)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            one.fail(check.__name__.replace("_", " "), wrong)


def undo(when: str) -> None:
    left = lightning_patches.deactivate()
    if left:
        fail("undo is exact", f"left as they are ({when}): {left}")


if __name__ == "__main__":
    main()
