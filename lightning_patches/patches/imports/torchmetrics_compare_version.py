"""``pytorch/callbacks/progress/rich_progress.py`` of 1.7: a helper that torchmetrics no longer has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.imports import _statements

_RICH_PROGRESS = "pytorch.callbacks.progress.rich_progress"


def _answer(name: str, found: Any) -> Any:
    if name == "torchmetrics.utilities.imports" and not hasattr(found, "_compare_version"):
        return SimpleNamespace(_compare_version=_compare_version)
    return None


def _compare_version(package: str, compare: Callable[[Any, Any], bool], version: str) -> bool:
    """Whether the installed version of a package compares like that."""
    from importlib import metadata

    from packaging.version import Version

    try:
        return bool(compare(Version(metadata.version(package)), Version(version)))
    except metadata.PackageNotFoundError:
        return False


PATCH = Patch(
    name="torchmetrics-compare-version",
    added="0.2.0",
    title="Lightning 1.7 can be imported with the torchmetrics of today",
    group="compat",
    for_import=True,
    affected=(),
    affected_1x=(">=1.7.0,<1.8.0",),
    targets=(
        Target(f"{_RICH_PROGRESS}:__import__", _statements.answered(_RICH_PROGRESS, _answer), adds=True, early=True),
    ),
    upstream=Upstream(fixed_in="1.8.0"),
    impact=Impact(
        "import pytorch_lightning fails with a torchmetrics that no longer has a private helper of that name.",
        ("cannot import name '_compare_version' from 'torchmetrics.utilities.imports'",),
        error="ImportError: cannot import name '_compare_version' from 'torchmetrics.utilities.imports' (...)",
    ),
    note="Works only if lightning_patches comes before the first import of Lightning.",
)
