"""Fixes for known bugs of PyTorch Lightning 2.x, applied to the installed Lightning.

Write ``import lightning_patches`` at the top of a script. The environment variable ``LIGHTNING_PATCHES`` selects
patches (see :mod:`lightning_patches.engine.toggle`). ``lightning-patches status`` shows which patches are applied, and
why others are not.
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
    """Apply patches to the Lightning that is imported now or later.

    Importing this package calls this function already. If you call it, linters do not report the import as unused.

    Args:
        spec: a toggle as in ``LIGHTNING_PATCHES``; ``None`` reads the environment, where unset means the default set.
            It replaces the earlier selection of the import or the environment: ``"19813"`` selects only that patch,
            ``"default,19813"`` adds it to the default set. If this drops patches, one line reports it.

    Raises:
        TypeError: ``spec`` is not a string.
        ToggleError: ``spec`` names a patch, group or issue that does not exist.
        PatchError: under ``strict``, a selected patch could not be applied.
    """
    startup.activate(spec)


def deactivate() -> list[str]:
    """Restore the original objects.

    Returns:
        The attributes that could not be restored, since other code has replaced or wrapped our function, and the places
        that still reference our functions.
    """
    return startup.deactivate()


def report() -> Report:
    """Return the verdict on every patch in every installed Lightning, from the live objects. Does not import Lightning.

    The command ``lightning-patches status`` shows the same before a program starts. The command ``lightning-patches
    report`` is different: it prints a block for a bug report.

    Returns:
        A list of :class:`lightning_patches.engine.verdicts.Entry`, which a notebook shows as a table.
    """
    from lightning_patches.engine.verdicts import entries

    return entries(startup.patcher(), startup.pending_selection())


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
