"""Fixes for known bugs of PyTorch Lightning 2.x, applied to the Lightning that is installed.

``import lightning_patches`` on top of a script is all there is to do. ``LIGHTNING_PATCHES`` in the environment
selects patches (see :mod:`lightning_patches.toggle`); ``lightning-patches status`` shows what happened and why.
"""

from __future__ import annotations

from lightning_patches import _startup
from lightning_patches.errors import LightningPatchesError, PatchError, ToggleError
from lightning_patches.trust import trust_checkpoints, trust_instantiator

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would double the time that a bare Python takes to start
    from typing import Optional

    from lightning_patches.verdicts import Entry

__version__ = "0.1.0"
__all__ = [
    "LightningPatchesError",
    "PatchError",
    "ToggleError",
    "activate",
    "deactivate",
    "report",
    "trust_checkpoints",
    "trust_instantiator",
]


def activate(spec: Optional[str] = None) -> None:
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
    from lightning_patches.verdicts import entries

    return entries(_startup.patcher(), _startup.outlook())


def __getattr__(name: str) -> object:
    if name in ("GradientSyncCheck", "GradientSyncError"):
        from lightning_patches import sync_check

        return getattr(sync_check, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_startup.on_import()
