"""Activation when Python starts or when this package is imported. Imports are as late as possible.

The three ways in (the import, the launcher's ``sitecustomize``, the ``autostart`` line) import the package, which calls
:func:`on_import`. Until Lightning is imported, only one small finder is in ``sys.meta_path``. The loader of Lightning's
first module imports wrapt, packaging and the catalogue.
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

LOOKS_ONLY = "_LIGHTNING_PATCHES_IMPORT_ONLY"
"""Set by our own command line, which looks at patches and must not apply any to itself."""
LAUNCHED_FOR = "_LIGHTNING_PATCHES_FOR"
"""Set by ``lightning-patches run``: version and prefix of the only Python in which its ``sitecustomize`` acts."""
PARENT = "_LIGHTNING_PATCHES_PARENT"
"""Set by a program that has activated the patches by an import, for its workers: version and prefix of its Python."""
PARENT_TOGGLE = "_LIGHTNING_PATCHES_PARENT_TOGGLE"
"""The toggle of that program, if it has passed one to ``activate``."""
LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launcher")
"""Directory of the ``sitecustomize`` that activates the patches when Python starts."""

_patcher: Optional[Patcher] = None
_making = _thread.allocate_lock()
_told_to_stop = False


def during_site() -> bool:
    """True while Python is still starting: a ``.pth`` line or a ``sitecustomize`` imported this package."""
    spec = getattr(sys.modules.get("site"), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def on_import() -> None:
    """Activate on ``import lightning_patches``. Errors never end a Python that is still starting."""
    if LOOKS_ONLY in os.environ or OWN_COMMAND:
        return
    if not during_site():
        activate(None)
    elif asks_for_patches(os.environ.get(VARIABLE)):
        _arm(_Armed(None, tolerant=True))


def is_settled() -> bool:
    """True if patches are active, will be applied when Lightning is imported, or are switched off on purpose."""
    patched = _patcher is not None and _patcher.active
    return patched or _told_to_stop or hooks.in_force()


def activate(spec: Optional[str]) -> None:
    """See :func:`lightning_patches.activate`."""
    global _told_to_stop
    if spec is not None and not isinstance(spec, str):
        raise TypeError(f"activate() takes a text such as 'default,-19813', not {spec!r}")
    _told_to_stop = False
    armed = _Armed(spec, tolerant=False)
    text = armed.text
    try:
        if text is not None and not are_plain(text):
            selection = armed.selection()  # an unknown item is reported now, not when Lightning is imported
            if spec is not None:
                _say_what_is_lost(spec, selection)
        if any(root in sys.modules for root in hooks.ROOT_PACKAGES) or (_patcher is not None and _patcher.active):
            _fire(armed.selection())
        else:
            _arm(armed)
    except ImportError as error:
        _go_without(error, text)
        return
    _leave_workers()
    if _selects_any(text):
        os.environ[PARENT] = this_python()
        if spec is not None:
            os.environ[PARENT_TOGGLE] = spec
        hooks.call_for_worker_libraries(_reach_workers)


def this_python() -> str:
    """Version and prefix of this Python, by which its child processes recognize its environment."""
    major, minor = sys.version_info[:2]
    return f"{major}.{minor} {os.path.realpath(sys.prefix)}"


def _reach_workers() -> None:
    """Let Python run our ``sitecustomize`` in child processes, unless another one is before it on PYTHONPATH."""
    path = os.environ.get("PYTHONPATH", "")
    if LAUNCHER not in path.split(os.pathsep) and os.path.isdir(LAUNCHER) and os.pathsep not in LAUNCHER:
        os.environ["PYTHONPATH"] = f"{path}{os.pathsep}{LAUNCHER}" if path else LAUNCHER


def _leave_workers() -> None:
    """Undo what this process has set for its workers."""
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
    """Return True if an activation applies patches. Without a word it applies the default set."""
    return asks_for_patches(text) or not split(text or "")


def _say_what_is_lost(spec: str, selection: Selection) -> None:
    """Print a line if a selection drops patches: many users expect ``activate("19813")`` to add one."""
    before = _patcher.selection if _patcher is not None and _patcher.active else outlook()
    added = _parse(f"default,{spec}").names
    lost = (before.names if before is not None else frozenset()) & (added - selection.names)
    if lost and not selection.quiet:
        from lightning_patches import notices

        notices.notice_once(
            "lost",
            f"activate({spec!r}) replaces the selection; patches that are off now: {len(lost)}. "
            f"activate({'default,' + spec!r}) keeps them.",
        )


def _arm(armed: _Armed) -> None:
    hooks.install(armed, armed.concerns)


def deactivate() -> list[str]:
    """See :func:`lightning_patches.deactivate`."""
    global _told_to_stop
    _told_to_stop = True
    _leave_workers()
    hooks.remove()
    return _patcher.deactivate() if _patcher is not None else []


def patcher() -> Patcher:
    """The one patcher of this process."""
    global _patcher
    if _patcher is None:
        from lightning_patches.engine.patcher import Patcher

        made = Patcher(_catalogue())
        with _making:
            _patcher = _patcher or made
    return _patcher


def outlook() -> Optional[Selection]:
    """Return the selection that will be activated when Lightning is imported; ``None`` if there is none."""
    from lightning_patches.engine.toggle import Selection
    from lightning_patches.errors import ToggleError

    armed = hooks.installed()
    if not isinstance(armed, _Armed) or not hooks.in_force():
        return Selection(frozenset(), spec="this process, in which nothing is activated")
    try:
        return armed.selection()
    except ToggleError:
        return Selection(frozenset(), spec=f"{armed.text}, which is in error")


def _parse(text: Optional[str]) -> Selection:
    from lightning_patches.engine.toggle import parse

    return parse(text, _catalogue())


def _catalogue() -> tuple[Patch, ...]:
    from lightning_patches.patches import index

    return index()


def _fire(selection: Selection, armed: Optional[_Armed] = None) -> None:
    patcher().activate(selection, on_behalf_of=armed)
    if not selection.names:
        return
    if os.environ.get("LIGHTNING_PATCHES_HANG_TIMEOUT"):
        from lightning_patches.ranks import hang

        hang.start_from_environment()
    if os.environ.get("LIGHTNING_PATCHES_RANK_BY_RANK"):
        from lightning_patches.ranks import rank_by_rank

        rank_by_rank.install_from_environment()


def _go_without(error: ImportError, text: Optional[str]) -> None:
    """Warn that a required package is missing or broken, and let the program run unpatched.

    Raises:
        PatchError: under ``strict``.
    """
    global _told_to_stop
    from lightning_patches import notices

    message = f"nothing is patched ({error}); {remedy(error)}"
    if "strict" in split(text or ""):
        raise PatchError(message) from error
    _told_to_stop = True  # so that a Trainer does not warn again
    hooks.remove()
    notices.notice(f"{message}.", urgent=not notices.is_child())


def remedy(error: ImportError) -> str:
    """Return the remedy for a missing or broken package."""
    name = (error.name or "wrapt").partition(".")[0].replace("_", "-")
    return f"`{sys.executable} -m pip install --force-reinstall {name}` fixes it"


class _Armed:
    """Activate when the loader of Lightning's first module calls this.

    Until activation succeeds, it is called again for each module, also by other threads, which is harmless. So after a
    failure no later import passes unpatched.

    Args:
        spec: a toggle; ``None`` to read the environment at that time.
        tolerant: Python loaded this package, not the program. Report problems without ending the program.
    """

    def __init__(self, spec: Optional[str], tolerant: bool) -> None:
        self.spec = spec
        self.tolerant = tolerant
        self._parsed: tuple[Optional[str], Optional[Selection]] = None, None

    @property
    def text(self) -> Optional[str]:
        """The given toggle, or that of the environment."""
        return os.environ.get(VARIABLE) if self.spec is None else self.spec

    def selection(self) -> Selection:
        """Parse the toggle, once for each value.

        Raises:
            ToggleError: an item is unknown.
        """
        text = self.text
        parsed_text, selection = self._parsed
        if selection is None or parsed_text != text:
            selection = _parse(text)
            self._parsed = text, selection
        return selection

    def concerns(self, name: str, spec: Optional[ModuleSpec] = None) -> bool:
        """Every module does, until we are active; none if the environment asks for nothing."""
        text = self.text
        if _selects_any(text):
            return True
        if "." in name:
            self.spec = text  # Lightning is being imported now; later values of the variable are for other processes
        return False

    def __call__(self) -> Optional[Patcher]:
        try:
            _fire(self.selection(), self)
            return patcher()
        except ImportError as error:
            _go_without(error, self.text)
            return None
        except Exception as error:
            if not self.tolerant or isinstance(error, PatchError):
                raise
            from lightning_patches import notices

            notices.notice(f"{error} Nothing is patched.", urgent=not notices.is_child())
            hooks.remove()
            return None
