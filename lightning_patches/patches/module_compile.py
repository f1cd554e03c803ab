"""``pytorch/core/module.py``: what a compiled ``LightningModule`` calls that torch.compile cannot look into."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _log(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    eager: Optional[Callable[..., None]] = None
    # Asked in each call, and so without a detour over torch's Python code. Older torch does not have it, nor the bug.
    compiled_code = getattr(sys.modules.get("torch"), "_C", None)
    for name in ("_dynamo", "eval_frame", "get_eval_frame_callback"):
        compiled_code = getattr(compiled_code, name, None)
    runs_below: Callable[[], Any] = compiled_code or _nothing

    def log(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal eager
        if runs_below() is None:
            original(self, *args, **kwargs)
            return
        if eager is None:
            import torch

            eager = torch.compiler.disable(original)
        eager(self, *args, **kwargs)

    # What torch.compiler.disable leaves on a function. Called from a compiled one it is not looked into.
    log._torchdynamo_disable = True  # type: ignore[attr-defined]
    return log


def _nothing() -> None:
    return None


PATCHES = (
    Patch(
        name="compiled-log",
        title="self.log works in a LightningModule that is compiled",
        group="compat",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target("pytorch.core.module:LightningModule.log", _log),),
        upstream=Upstream(issues=(21836,), pull_requests=(21837,), commit="35c8970ba0"),
        impact=Impact(
            "With torch 2.12 and later a compiled LightningModule that logs anything ends in its first step.",
            (
                "InternalTorchDynamoError: AttributeError: 'method' object has no attribute '__dict__'",
                "torch._dynamo.exc.InternalTorchDynamoError in self.log",
            ),
        ),
        equivalent_to="the same training without torch.compile",
        note="torch.compile stops at each self.log and goes on after it, as with the official fix: fullgraph=True "
        "and self.log do not go together.",
    ),
)
