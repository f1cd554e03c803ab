"""Fixes for known bugs of PyTorch Lightning 2.x, applied to the Lightning that is installed.

``import lightning_patches`` on top of a script is all there is to do. ``LIGHTNING_PATCHES`` in the environment
selects patches (see :mod:`lightning_patches.toggle`); ``lightning-patches status`` shows what happened and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Optional as _Optional

from lightning_patches import _startup
from lightning_patches.errors import LightningPatchesError, PatchError, ToggleError

if _TYPE_CHECKING:
    from lightning_patches.report import Entry

__version__ = "0.1.0"
__all__ = ["LightningPatchesError", "PatchError", "ToggleError", "activate", "deactivate", "report"]


def activate(spec: _Optional[str] = None) -> None:
    """Apply patches to the Lightning that is imported, or will be. Importing this package has called it already.

    Args:
        spec: a toggle as in ``LIGHTNING_PATCHES``; ``None`` reads the environment, where unset means the default set.

    Raises:
        ToggleError: ``spec`` names a patch, group or issue that does not exist.
        PatchError: under ``strict``, a wanted patch could not be applied.
    """
    _startup.activate(spec)


def deactivate() -> list[str]:
    """Put back every original, the very object into the very slot.

    Returns:
        The attributes that could not be restored, because other code replaced or wrapped ours in the meantime.
    """
    return _startup.deactivate()


def report() -> list[Entry]:
    """The verdict on every patch in every installed Lightning, asked of the live objects. Imports no Lightning."""
    from lightning_patches.report import entries

    return entries(_startup.patcher())


_startup.on_import()
