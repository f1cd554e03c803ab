"""NeptuneLogger can be imported, and its first use reports that it was removed."""

from typing import Any

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _getattr(original: None, namespace: str) -> Any:
    def __getattr__(name: str) -> Any:  # noqa: N807
        if name == "NeptuneLogger":
            # Upstream's stub raises an error that explains the removal, but pytorch.loggers no longer exports it.
            return upstream_module(namespace, "pytorch.loggers.neptune").NeptuneLogger
        raise AttributeError(f"module 'pytorch.loggers' of {namespace} has no attribute {name!r}")

    return __getattr__


PATCH = Patch(
    added="0.2.0",
    group="compat",
    affected=(">=2.6.4,<=2.6.6",),
    targets=(Target("pytorch.loggers:__getattr__", _getattr, adds=True),),
    upstream=Upstream(pull_requests=(21572,)),
    impact=Impact(
        "Packages that import NeptuneLogger at module level cannot be imported, even if they don't use it.",
        ("cannot import name 'NeptuneLogger' from 'lightning.pytorch.loggers'",),
        error="ImportError: cannot import name 'NeptuneLogger' from 'lightning.pytorch.loggers' (...)",
    ),
    opt_in="users who cannot import a package because it imports NeptuneLogger and does not use it",
    signs=("NeptuneLogger",),
    note="Opt-in because a program that imports NeptuneLogger in a try block, to find out if it exists, would "
    "find it. Without the patch, import it from lightning.pytorch.loggers.neptune.",
)
