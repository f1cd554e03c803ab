"""Hyperparameters in a checkpoint cannot make LightningCLI import a module.

jsonargparse converts strings to classes and imports the modules that they name. A checkpoint must not trigger that:
while its hyperparameters are parsed, only modules that are already imported can be found.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from typing import Any, Callable, Iterator, Optional

from lightning_patches import trust
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_IMPORTER = "import_object"
"""jsonargparse's function that imports the object that a value names."""

_INSTANTIATING = "instantiate_classes"
"""jsonargparse's method that calls constructors after parsing."""


def _instantiate_module(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def instantiate_module(class_type: type, config: dict[str, Any]) -> Any:
        with _no_new_modules(config):
            return original(class_type, config)

    return instantiate_module


def _parse_ckpt_path(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def parse_ckpt_path(self: Any) -> None:
        parser = self.parser
        parse_object = parser.parse_object

        def parse_file_values(values: Any, *args: Any, **kwargs: Any) -> Any:
            with _no_new_modules(values):
                return parse_object(values, *args, **kwargs)

        parser.parse_object = parse_file_values
        try:
            original(self)
        finally:
            del parser.parse_object

    return parse_ckpt_path


@contextlib.contextmanager
def _no_new_modules(values: Any) -> Iterator[None]:
    """Prevent this thread from importing modules that ``values`` name and that are not imported yet.

    Constructors may still import modules.

    Raises:
        ValueError: a module would have been imported.
    """
    finder = _Refusing(set(_modules_named_in(values)))
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        # Replace the list instead of changing it: a thread that iterates over it would skip the next finder.
        sys.meta_path = [other for other in sys.meta_path if other is not finder]
        if finder.open_to_others:
            raise ValueError(finder.open_to_others) from None
        if finder.refused:
            raise ValueError(
                f"The checkpoint's hyperparameters name {finder.refused[0]!r}, a module that has not been imported."
                " It was not imported, because a file must not decide which modules are imported. If you trust this"
                " file, import the classes that it names before you load it, or call"
                f" lightning_patches.trust_module({finder.module_of(finder.refused[0])!r})."
            ) from None


class _Refusing:
    """A finder that refuses the given modules, and every module that jsonargparse imports to resolve a value.

    Args:
        names: names of the modules.
    """

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.thread = threading.get_ident()
        self.refused: list[str] = []
        """Refused modules that exist."""
        self.open_to_others = ""
        """The reason why a trusted module is refused: other users can change it."""

    def module_of(self, refused: str) -> str:
        """Return the module of the class whose path starts with ``refused``."""
        path = max((name for name in self.names if name.startswith(f"{refused}.")), key=len, default=refused)
        return path if path == refused else path.rpartition(".")[0]

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if threading.get_ident() != self.thread:
            return
        functions = _importing_functions()
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(fullname, path, target) for finder in others)
        if trust.is_trusted_module(fullname):
            spec = next(filter(None, found), None)
            why = trust.why_module_is_open(getattr(spec, "origin", None))
            if why:
                self.open_to_others = f"{fullname!r} is not imported, though the script trusts it: {why}."
                raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
            return
        if functions[:1] != [_IMPORTER] and (fullname not in self.names or _INSTANTIATING in functions):
            return
        if any(found):
            self.refused.append(fullname)
        raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def _importing_functions() -> list[str]:
    """Return the names of the functions that led to an import, innermost first."""
    functions: list[str] = []
    frame: Optional[Any] = sys._getframe(2)
    while frame is not None:
        if functions or not frame.f_globals.get("__name__", "").startswith("importlib"):
            functions.append(frame.f_code.co_name)
        frame = frame.f_back
    return functions


def _modules_named_in(values: Any) -> Iterator[str]:
    """Yield each dotted name in the strings of nested values, and its prefixes: ``a.b.C`` yields a, a.b and a.b.C."""
    if isinstance(values, str):
        for name in re.findall(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", values):
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))
    elif isinstance(values, dict):
        for key, value in values.items():
            yield from _modules_named_in(key)
            yield from _modules_named_in(value)
    elif isinstance(values, (list, tuple, set)):
        for value in values:
            yield from _modules_named_in(value)


PATCH = Patch(
    group="security",
    changes_results=Effect(
        "how it ends", "loading raises an error if a checkpoint names a class in a module that is not imported"
    ),
    affected=(">=2.3.0,<=2.6.6",),
    targets=(
        Target("pytorch.cli:instantiate_module", _instantiate_module),
        Target("pytorch.cli:LightningCLI._parse_ckpt_path", _parse_ckpt_path, since="2.5.5"),
    ),
    upstream=Upstream(issues=(21913,)),
    impact=Impact(
        "With LightningCLI and --ckpt_path, and in load_from_checkpoint of a file that LightningCLI wrote, the "
        "file decides which modules are imported. Importing a module runs its code, even with "
        "weights_only=True."
    ),
    opt_in="users who load other people's checkpoints with LightningCLI, or other people's checkpoints that "
    "LightningCLI wrote",
    signs=("LightningCLI",),
    note="Opt-in; the group `security` enables it (LIGHTNING_PATCHES=default,security). Before you load the "
    "file, import the classes that its hyperparameters name, as 2.6.6 requires for the model's class, or "
    "pass their module to lightning_patches.trust_module(...). Without the patch, load files without the "
    "hyperparameters of LightningCLI, and name the classes in the script or on the command line.",
    around=("cli-checkpoint-of-other-class", "cli-checkpoint-of-subclass", "trusted-checkpoint-cli"),
)
