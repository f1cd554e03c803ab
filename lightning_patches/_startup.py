"""What runs when a Python starts or this package is imported. Nothing is imported here before it must be.

The three ways in (the import, the launcher's ``sitecustomize``, the ``autostart`` line) all import the package, and
that calls :func:`on_import`. As long as no Lightning is imported, all that stands in ``sys.meta_path`` is one small
finder; wrapt, packaging and the catalogue are loaded when Lightning is.
"""

from __future__ import annotations

import _thread
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself is not imported at start-up
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Optional

    from lightning_patches.apply import Patcher
    from lightning_patches.toggle import Selection

VARIABLE = "LIGHTNING_PATCHES"
SLEEPING = "_LIGHTNING_PATCHES_IMPORT_ONLY"
"""Set by our own command line, which looks at patches and must not apply any to itself."""
LAUNCHED_FOR = "_LIGHTNING_PATCHES_FOR"
"""Set by ``lightning-patches run``: version and prefix of the only Python in which its ``sitecustomize`` acts."""
ROOTS = frozenset({"lightning", "pytorch_lightning", "lightning_fabric"})
_NOTHING = frozenset({"0", "off", "false", "no", "none"})

_patcher: Optional[Patcher] = None
_making = _thread.allocate_lock()
_told_to_stop = False


def during_site() -> bool:
    """Whether Python itself is still starting: we were imported by a ``.pth`` line or a ``sitecustomize``."""
    spec = getattr(sys.modules.get("site"), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def on_import() -> None:
    """What ``import lightning_patches`` does: activate, without endangering a Python that is still starting."""
    if SLEEPING in os.environ or _is_own_command():
        return
    if not during_site():
        activate(None)
    elif os.environ.get(VARIABLE, "").strip().lower() not in _NOTHING:
        _arm(None, tolerant=True)


def alive() -> bool:
    """Whether this process is patched, or will be when it imports Lightning, or was told not to be."""
    patched = _patcher is not None and _patcher.active
    return patched or _told_to_stop or any(isinstance(finder, _Armed) for finder in sys.meta_path)


def activate(spec: Optional[str]) -> None:
    """See :func:`lightning_patches.activate`."""
    global _told_to_stop
    _told_to_stop = False
    text = os.environ.get(VARIABLE) if spec is None else spec
    if text is not None and text.strip():
        _selection(text)  # an unknown item is told now, not when Lightning is imported
    if ROOTS & set(sys.modules) or (_patcher is not None and _patcher.active):
        _fire(spec)
    else:
        _arm(spec, tolerant=False)


def deactivate() -> list[str]:
    """See :func:`lightning_patches.deactivate`."""
    global _told_to_stop
    _told_to_stop = True
    _disarm()
    return _patcher.deactivate() if _patcher is not None else []


def patcher() -> Patcher:
    """The one patcher of this process."""
    global _patcher
    if _patcher is None:
        from lightning_patches.apply import Patcher
        from lightning_patches.catalog import all_patches

        made = Patcher(all_patches())
        with _making:
            _patcher = _patcher or made
    return _patcher


def outlook() -> Optional[Selection]:
    """What will be activated when Lightning is imported: nothing, if nothing waits for that."""
    from lightning_patches.errors import ToggleError
    from lightning_patches.toggle import Selection

    armed = next((finder for finder in sys.meta_path if isinstance(finder, _Armed)), None)
    if armed is None:
        return Selection(frozenset(), spec="this process, in which nothing is activated")
    text = os.environ.get(VARIABLE) if armed.spec is None else armed.spec
    try:
        return _selection(text)
    except ToggleError:
        return Selection(frozenset(), spec=f"{text}, which is in error")


def _selection(text: Optional[str]) -> Selection:
    from lightning_patches.catalog import all_patches
    from lightning_patches.toggle import parse

    return parse(text, all_patches())


def _fire(spec: Optional[str]) -> None:
    text = os.environ.get(VARIABLE) if spec is None else spec
    patcher().activate(_selection(text))
    if (text or "").strip().lower() in _NOTHING:
        return
    if os.environ.get("LIGHTNING_PATCHES_HANG_TIMEOUT"):
        from lightning_patches import hang

        hang.start_from_environment()
    if os.environ.get("LIGHTNING_PATCHES_RANK_BY_RANK"):
        from lightning_patches import rank_by_rank

        rank_by_rank.install_from_environment()


class _Armed:
    """Waits for the first import of a Lightning, activates, and steps aside."""

    def __init__(self, spec: Optional[str], tolerant: bool) -> None:
        self.spec = spec
        self.tolerant = tolerant

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if fullname.partition(".")[0] not in ROOTS:  # a submodule comes first if another finder served the root
            return None
        # Armed until all hooks stand: a second thread that imports Lightning meanwhile activates as well, which is
        # harmless, and a failure is not followed by an import that goes through unpatched.
        collects = gc.isenabled()
        gc.disable()  # what is made here stays; looking through it, and through torch, takes as long as making it
        try:
            _fire(self.spec)
        except Exception as error:
            if not self.tolerant:
                raise
            say(f"{error} Nothing is patched.")
        finally:
            if collects:
                gc.enable()
        _disarm()
        # The finder that now stands in front was not there when Python began to ask for this module.
        hooks = sys.modules.get("lightning_patches.hooks")
        return hooks.find_spec(fullname, path, target) if hooks is not None else None


def _arm(spec: Optional[str], tolerant: bool) -> None:
    _disarm()
    sys.meta_path.insert(0, _Armed(spec, tolerant))


def _disarm() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Armed)]


def _is_own_command() -> bool:
    """Whether this process is ``lightning-patches`` or ``python -m lightning_patches``."""
    program = getattr(sys, "argv", None) or [""]
    if program[0] != "-m":
        return bool(os.path.basename(program[0]) == "lightning-patches")
    command: Sequence[str] = getattr(sys, "orig_argv", ())  # argv[0] is not the module's path yet
    return any(pair == ("-m", "lightning_patches") for pair in zip(command, command[1:]))


def say(message: str) -> None:
    """One line on stderr, if there is one to write to.

    Past the stream's buffer: what cannot be written would stay in there and turn the program's exit status into 120.
    """
    stream, line = sys.stderr, f"lightning_patches: {message}\n"
    try:
        if stream is sys.__stderr__ and stream is not None:
            stream.flush()
            os.write(stream.fileno(), line.encode(stream.encoding or "utf-8", "backslashreplace"))
        else:
            stream.write(line)
            stream.flush()
    except Exception:
        pass
