"""Fixes for known bugs of PyTorch Lightning 2.x, applied to the Lightning that is installed.

``import lightning_patches`` at the top of a script is all there is to do. ``LIGHTNING_PATCHES`` in the environment
selects patches (see :mod:`lightning_patches.engine.toggle`); ``lightning-patches status`` shows what happened and why.
"""

from __future__ import annotations

from lightning_patches.activation import startup
from lightning_patches.errors import LightningPatchesError, LightningPatchesWarning, PatchError, ToggleError
from lightning_patches.trust import trust_checkpoints, trust_instantiator, trust_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would double the time that a bare Python takes to start
    from typing import Optional

    from lightning_patches.engine.verdicts import Entry, Report
    from lightning_patches.ranks.gradient_sync_check import Difference, GradientSyncCheck, GradientSyncError
    from lightning_patches.ranks.hang import Watch, watch_hangs
    from lightning_patches.ranks.rank_by_rank import RankByRankError, RankByRankTimeoutError, rank_by_rank

__version__ = "0.2.0"
__all__ = [
    "Difference",
    "Entry",
    "GradientSyncCheck",
    "GradientSyncError",
    "LightningPatchesError",
    "LightningPatchesWarning",
    "PatchError",
    "RankByRankError",
    "RankByRankTimeoutError",
    "Report",
    "ToggleError",
    "Watch",
    "activate",
    "deactivate",
    "rank_by_rank",
    "report",
    "trust_checkpoints",
    "trust_instantiator",
    "trust_module",
    "watch_hangs",
]


def activate(spec: Optional[str] = None) -> None:
    """Apply patches to the Lightning that is imported, or will be. Importing this package has already called it.

    A script that calls it makes use of its import, which linters then leave.

    Args:
        spec: a toggle as in ``LIGHTNING_PATCHES``; ``None`` reads the environment, where unset means the default set.
            It replaces what was selected before, by the import or the environment: ``"19813"`` leaves that patch alone,
            ``"default,19813"`` adds it to the default set. Where patches are lost so, one line says it.

    Raises:
        TypeError: ``spec`` is not a text.
        ToggleError: ``spec`` names a patch, group or issue that does not exist.
        PatchError: under ``strict``, a wanted patch could not be applied.
    """
    startup.activate(spec)


def deactivate() -> list[str]:
    """Restore the original objects.

    Returns: The attributes that could not be restored, since other code has replaced or wrapped our function, and
    places that still reference our functions.
    """
    return startup.deactivate()


def report() -> Report:
    """The verdict on every patch in every installed Lightning, asked of the live objects. Imports no Lightning.

    The command ``lightning-patches status`` shows the same of a program before it starts. The command
    ``lightning-patches report`` writes something else, a block for a bug report.

    Returns:
        A list of :class:`lightning_patches.engine.verdicts.Entry`, which a notebook shows as a table.
    """
    from lightning_patches.engine.verdicts import entries

    return entries(startup.patcher(), startup.outlook())


_LAZY = {
    "Difference": "ranks.gradient_sync_check",
    "Entry": "engine.verdicts",
    "GradientSyncCheck": "ranks.gradient_sync_check",
    "GradientSyncError": "ranks.gradient_sync_check",
    "RankByRankError": "ranks.rank_by_rank",
    "RankByRankTimeoutError": "ranks.rank_by_rank",
    "Report": "engine.verdicts",
    "Watch": "ranks.hang",
    "rank_by_rank": "ranks.rank_by_rank",
    "watch_hangs": "ranks.hang",
}
"""Names that are loaded on first use."""


def __getattr__(name: str) -> object:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


startup.on_import()
