"""What runs when a Python starts or this package is imported. Nothing is imported here before it must be.

The three ways in (the import, the launcher's ``sitecustomize``, the ``autostart`` line) all end in :func:`activate`.
As long as no Lightning is imported, all that stands in ``sys.meta_path`` is one small finder; wrapt, packaging and
the catalogue are loaded when Lightning is.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself is not imported at start-up
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any, Optional

    from lightning_patches.apply import Patcher

VARIABLE = "LIGHTNING_PATCHES"
SLEEPING = "_LIGHTNING_PATCHES_IMPORT_ONLY"
"""Set by our own command line, which looks at patches and must not apply any to itself."""
ROOTS = frozenset({"lightning", "pytorch_lightning", "lightning_fabric"})
_NOTHING = frozenset({"0", "off", "false", "no", "none"})

_patcher: Optional[Patcher] = None


def during_site() -> bool:
    """Whether Python itself is still starting: we were imported by a ``.pth`` line or a ``sitecustomize``."""
    spec = getattr(sys.modules.get("site"), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def auto() -> None:
    """Activate if the environment asks for it. Never raises, whatever is wrong: for ``.start`` and ``sitecustomize``."""
    value = os.environ.get(VARIABLE, "").strip().lower()
    if value and value not in _NOTHING:
        _arm(None, tolerant=True)


def on_import() -> None:
    """What ``import lightning_patches`` does: activate, without endangering a Python that is still starting."""
    if SLEEPING in os.environ:
        return
    if during_site():
        _arm(None, tolerant=True)
    else:
        activate(None)


def activate(spec: Optional[str]) -> None:
    """See :func:`lightning_patches.activate`."""
    text = os.environ.get(VARIABLE) if spec is None else spec
    if text is not None and text.strip():
        _selection(text)  # an unknown item is told now, not when Lightning is imported
    if ROOTS & set(sys.modules) or (_patcher is not None and _patcher.active):
        _fire(spec)
    else:
        _arm(spec, tolerant=False)


def deactivate() -> list[str]:
    """See :func:`lightning_patches.deactivate`."""
    _disarm()
    return _patcher.deactivate() if _patcher is not None else []


def patcher() -> Patcher:
    """The one patcher of this process."""
    global _patcher
    if _patcher is None:
        from lightning_patches.apply import Patcher
        from lightning_patches.catalog import all_patches

        _patcher = Patcher(all_patches())
    return _patcher


def _selection(text: Optional[str]) -> Any:
    from lightning_patches.catalog import all_patches
    from lightning_patches.toggle import parse

    return parse(text, all_patches())


def _fire(spec: Optional[str]) -> None:
    text = os.environ.get(VARIABLE) if spec is None else spec
    patcher().activate(_selection(text))


class _Armed:
    """Waits for the first import of a Lightning, activates, and steps aside."""

    def __init__(self, spec: Optional[str], tolerant: bool) -> None:
        self.spec = spec
        self.tolerant = tolerant

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> None:
        if fullname not in ROOTS:
            return None
        _disarm()
        try:
            _fire(self.spec)
        except Exception as error:
            if not self.tolerant:
                raise
            say(f"{error} Nothing is patched.")
        return None


def _arm(spec: Optional[str], tolerant: bool) -> None:
    _disarm()
    sys.meta_path.insert(0, _Armed(spec, tolerant))


def _disarm() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Armed)]


def say(message: str) -> None:
    """One line on stderr, if there is one to write to."""
    try:
        sys.stderr.write(f"lightning_patches: {message}\n")
    except Exception:
        pass
