"""Activation when Python starts or when this package is imported. Other modules are imported as late as possible.

The user's import, the launcher's ``sitecustomize`` and the ``autostart`` line all import the package, which calls
:func:`on_import`. This puts one small finder into ``sys.meta_path``. When Lightning's first module is imported, its
loader imports wrapt, packaging and the catalogue.
"""

from __future__ import annotations

import _thread
import os
import sys

from lightning_patches.activation import OWN_COMMAND
from lightning_patches.engine import hooks
from lightning_patches.engine.words import VARIABLE as VARIABLE
from lightning_patches.engine.words import are_plain, asks_for_patches, split
from lightning_patches.errors import PatchError

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself is not imported at start-up
    from importlib.machinery import ModuleSpec
    from typing import Optional

    from lightning_patches.engine.patcher import Patcher
    from lightning_patches.engine.toggle import Selection
    from lightning_patches.patch import Patch

INSPECT_ONLY = "_LIGHTNING_PATCHES_IMPORT_ONLY"
"""Variable that keeps our command line from patching itself."""
LAUNCHED_FOR = "_LIGHTNING_PATCHES_FOR"
"""Variable set by ``lightning-patches run``: version and prefix of the only Python in which its ``sitecustomize``
acts."""
PARENT = "_LIGHTNING_PATCHES_PARENT"
"""Variable that a program sets for its workers when it imports this package: version and prefix of its Python."""
PARENT_TOGGLE = "_LIGHTNING_PATCHES_PARENT_TOGGLE"
"""Variable with the toggle that this program has passed to ``activate``, if any."""
LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launcher")
"""Directory of the ``sitecustomize`` that activates the patches when Python starts."""

_patcher: Optional[Patcher] = None
_patcher_lock = _thread.allocate_lock()
_switched_off = False


def is_python_starting() -> bool:
    """True while Python is starting, so that a ``.pth`` line or a ``sitecustomize`` imports this package."""
    spec = getattr(sys.modules.get("site"), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def on_import() -> None:
    """Activate on ``import lightning_patches``. While Python is starting, errors are printed and not raised."""
    if INSPECT_ONLY in os.environ or OWN_COMMAND:
        return
    if not is_python_starting():
        try:
            activate(None)
        except ValueError as error:
            _end_in_one_line(error)
            raise
    elif asks_for_patches(os.environ.get(VARIABLE)):
        _install_hook(_Activation(None, tolerant=True))


def _end_in_one_line(error: ValueError) -> None:
    from lightning_patches.errors import InvalidToggleError, ToggleError

    if isinstance(error, ToggleError):
        raise InvalidToggleError(str(error)) from None


def is_settled() -> bool:
    """True if patches are active, will be applied when Lightning is imported, or are switched off on purpose."""
    patched = _patcher is not None and _patcher.active
    return patched or _switched_off or hooks.is_watching()


def activate(spec: Optional[str]) -> None:
    """See :func:`lightning_patches.activate`."""
    global _switched_off
    if spec is not None and not isinstance(spec, str):
        raise TypeError(f"activate() takes a text such as 'default,-19813', not {spec!r}")
    _switched_off = False
    activation = _Activation(spec, tolerant=False)
    text = activation.text
    try:
        if text is not None and not are_plain(text):
            selection = activation.selection()  # raises for an unknown item now, and not when Lightning is imported
            if spec is not None:
                _report_dropped_patches(spec, selection)
        if any(root in sys.modules for root in hooks.ROOT_PACKAGES) or (_patcher is not None and _patcher.active):
            _activate_now(activation.selection())
        else:
            _install_hook(activation)
    except ImportError as error:
        _continue_unpatched(error, text)
        return
    _undo_worker_settings()
    if _selects_any(text):
        os.environ[PARENT] = this_python()
        if spec is not None:
            os.environ[PARENT_TOGGLE] = spec
        hooks.call_for_worker_libraries(_patch_workers)


def this_python() -> str:
    """Return version and prefix of this Python. Child processes compare them with their own."""
    major, minor = sys.version_info[:2]
    return f"{major}.{minor} {os.path.realpath(sys.prefix)}"


def _patch_workers() -> None:
    """Append our ``sitecustomize`` to PYTHONPATH for child processes. An earlier one on the path takes precedence."""
    path = os.environ.get("PYTHONPATH", "")
    if LAUNCHER not in path.split(os.pathsep) and os.path.isdir(LAUNCHER) and os.pathsep not in LAUNCHER:
        os.environ["PYTHONPATH"] = f"{path}{os.pathsep}{LAUNCHER}" if path else LAUNCHER


def _undo_worker_settings() -> None:
    """Remove the variables that this process has set for its workers."""
    os.environ.pop(PARENT_TOGGLE, None)
    if os.environ.pop(PARENT, None) is None or LAUNCHED_FOR in os.environ:
        return
    path = os.environ.get("PYTHONPATH", "")
    others, _, last = path.rpartition(os.pathsep)
    if last == LAUNCHER:
        os.environ["PYTHONPATH"] = others
        if not others:
            del os.environ["PYTHONPATH"]


def _selects_any(text: Optional[str]) -> bool:
    """Return True if an activation with this toggle applies patches. An empty toggle means the default set."""
    return asks_for_patches(text) or not split(text or "")


def _report_dropped_patches(spec: str, selection: Selection) -> None:
    """Print a line if a selection drops patches. Many users expect ``activate("19813")`` to add a patch."""
    before = _patcher.selection if _patcher is not None and _patcher.active else pending_selection()
    added = _parse(f"default,{spec}").names
    lost = (before.names if before is not None else frozenset()) & (added - selection.names)
    if lost and not selection.quiet:
        from lightning_patches import notices

        notices.notice_once(
            "lost",
            f"activate({spec!r}) replaces the selection: {len(lost)} {'patch is' if len(lost) == 1 else 'patches are'} "
            f"off now. activate({'default,' + spec!r}) keeps them.",
        )


def _install_hook(activation: _Activation) -> None:
    hooks.install(activation, activation.needs_work)


def deactivate() -> list[str]:
    """See :func:`lightning_patches.deactivate`."""
    global _switched_off
    _switched_off = True
    _undo_worker_settings()
    hooks.remove()
    return _patcher.deactivate() if _patcher is not None else []


def patcher() -> Patcher:
    """Return the patcher of this process, and create it at the first call."""
    global _patcher
    if _patcher is None:
        from lightning_patches.engine.patcher import Patcher

        made = Patcher(_catalogue())
        with _patcher_lock:
            _patcher = _patcher or made
    return _patcher


def pending_selection() -> Optional[Selection]:
    """Return the selection that will be activated when Lightning is imported; an empty one if none will be."""
    from lightning_patches.engine.toggle import Selection
    from lightning_patches.errors import ToggleError

    activation = hooks.installed()
    if not isinstance(activation, _Activation) or not hooks.is_watching():
        return Selection(frozenset(), spec="this process, in which nothing is activated")
    try:
        return activation.selection()
    except ToggleError:
        return Selection(frozenset(), spec=f"{activation.text}, which is invalid")


def _parse(text: Optional[str]) -> Selection:
    from lightning_patches.engine.toggle import parse

    return parse(text, _catalogue())


def _catalogue() -> tuple[Patch, ...]:
    from lightning_patches.patches import index

    return index()


def _activate_now(selection: Selection, activation: Optional[_Activation] = None) -> None:
    patcher().activate(selection, caller=activation)
    if not selection.names:
        return
    if os.environ.get("LIGHTNING_PATCHES_HANG_TIMEOUT"):
        from lightning_patches.ranks import hang

        hang.start_from_environment()
    if os.environ.get("LIGHTNING_PATCHES_RANK_BY_RANK"):
        from lightning_patches.ranks import rank_by_rank

        rank_by_rank.install_from_environment()


def _continue_unpatched(error: ImportError, text: Optional[str]) -> None:
    """Warn that a required package is missing or broken, and let the program run unpatched.

    Raises:
        PatchError: under ``strict``.
    """
    global _switched_off
    from lightning_patches import notices

    message = f"nothing is patched ({error}); {remedy(error)}"
    if "strict" in split(text or ""):
        raise PatchError(message) from error
    _switched_off = True  # so that a Trainer does not warn again
    hooks.remove()
    notices.notice(f"{message}.", urgent=not notices.is_child())


def remedy(error: ImportError) -> str:
    """Return the remedy for a missing or broken package."""
    name = (error.name or "wrapt").partition(".")[0].replace("_", "-")
    return f"`{sys.executable} -m pip install --force-reinstall {name}` fixes it"


class _Activation:
    """An activation that waits for the import of Lightning. The loader of Lightning's first module calls it.

    Loaders of further modules, also in other threads, call it again until it succeeds. So a failure does not leave
    later imports unpatched.

    Args:
        spec: a toggle; ``None`` to read the environment at the time of the call.
        tolerant: print problems instead of raising them, since Python loaded this package and not the program.
    """

    def __init__(self, spec: Optional[str], tolerant: bool) -> None:
        self.spec = spec
        self.tolerant = tolerant
        self._parsed: tuple[Optional[str], Optional[Selection]] = None, None

    @property
    def text(self) -> Optional[str]:
        """The given toggle, or the value of the environment variable."""
        return os.environ.get(VARIABLE) if self.spec is None else self.spec

    def selection(self) -> Selection:
        """Parse the toggle, and cache the result for its value.

        Raises:
            ToggleError: an item is unknown.
        """
        text = self.text
        parsed_text, selection = self._parsed
        if selection is None or parsed_text != text:
            selection = _parse(text)
            self._parsed = text, selection
        return selection

    def needs_work(self, name: str, spec: Optional[ModuleSpec] = None) -> bool:
        """True for every module until this activation has run; False if the environment selects no patches."""
        text = self.text
        if _selects_any(text):
            return True
        if "." in name:
            self.spec = text  # Lightning is being imported: ignore later changes of the variable in this process
        return False

    def __call__(self) -> Optional[Patcher]:
        try:
            _activate_now(self.selection(), self)
            return patcher()
        except ImportError as error:
            _continue_unpatched(error, self.text)
            return None
        except Exception as error:
            if not self.tolerant or isinstance(error, PatchError):
                raise
            from lightning_patches import notices

            notices.notice(f"{error} Nothing is patched.", urgent=not notices.is_child())
            hooks.remove()
            return None
