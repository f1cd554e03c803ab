"""Lightning 1.7 can be imported with a current torchmetrics.

The rich progress bar imports a helper that torchmetrics has removed.
"""

from types import SimpleNamespace
from typing import Any

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Upstream
from lightning_patches.patches.imports import _statements


def _answer(name: str, found: Any) -> Any:
    if name != "torchmetrics.utilities.imports" or hasattr(found, "_compare_version"):
        return None
    lightnings = upstream_module("pytorch_lightning", "pytorch.utilities.imports")._compare_version
    # The same function: torchmetrics used to import it from Lightning's module.
    return SimpleNamespace(_compare_version=lightnings)


PATCH = Patch(
    added="0.2.0",
    group="compat",
    affected=(">=1.7.0,<1.8.0",),
    targets=(_statements.answered("pytorch.callbacks.progress.rich_progress", _answer),),
    upstream=Upstream(fixed_in="1.8.0"),
    impact=Impact(
        "import pytorch_lightning fails with a torchmetrics that has no private function _compare_version.",
        ("cannot import name '_compare_version' from 'torchmetrics.utilities.imports'",),
        error="ImportError: cannot import name '_compare_version' from 'torchmetrics.utilities.imports' (...)",
    ),
    note="Import lightning_patches before Lightning.",
)
