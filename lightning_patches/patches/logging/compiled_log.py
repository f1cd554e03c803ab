"""self.log works in a compiled LightningModule."""

import sys
from typing import Any, Callable, Optional

from lightning_patches.engine.functions import skip_frames
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _log_eagerly(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    eager: Optional[Callable[..., None]] = None

    def log(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal eager
        # Without torch._dynamo nothing is compiled. Don't ask torch if the caller is compiled: torch 2.6 and 2.7 return
        # a reference that the caller does not own, which often crashes the process.
        if "torch._dynamo" not in sys.modules:
            original(self, *args, **kwargs)
            return
        if eager is None:
            eager = _uncompiled(original)
        eager(self, *args, **kwargs)

    # torch.compiler.disable sets this flag. Compiled code does not trace into such a function.
    log._torchdynamo_disable = True  # type: ignore[attr-defined]
    return log


def _uncompiled(function: Callable[..., None]) -> Callable[..., None]:
    """Disable compilation inside the function, at less than the 1 us per call that torch's decorator costs."""
    import torch._dynamo

    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 12):  # tested only with 2.12 and later
        disabled: Callable[..., None] = torch._dynamo.disable(function)
        return disabled
    set_eval_frame = torch._C._dynamo.eval_frame.set_eval_frame

    def uncompiled(*args: Any, **kwargs: Any) -> None:
        before = set_eval_frame(None)
        try:
            function(*args, **kwargs)
        finally:
            set_eval_frame(before)

    uncompiled._torchdynamo_disable = True  # type: ignore[attr-defined]
    skip_frames(uncompiled)
    return uncompiled


PATCH = Patch(
    group="compat",
    changes_results=Effect("numbers", "the logged means of a compiled module, with torch 2.2"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.core.module:LightningModule.log", _log_eagerly),),
    upstream=Upstream(issues=(21836,), pull_requests=(21837,), commit="35c8970ba0", merged=True),
    impact=Impact(
        "A compiled LightningModule that calls self.log fails in its first step with torch 2.12 and 2.13. With torch "
        "2.2 it also fails or, on newer Lightning, logs a wrong epoch mean without a warning.",
        (
            "InternalTorchDynamoError: AttributeError: 'method' object has no attribute '__dict__'",
            "torch._dynamo.exc.InternalTorchDynamoError in self.log",
            "LightningModule.log is kept out of torch.compile by torch._dynamo.disable, torch.compiler.disable",
        ),
        error="torch._dynamo.exc.InternalTorchDynamoError: AttributeError: 'method' object has no attribute '__dict__'",
        frames=("torch/_dynamo/",),
    ),
    note="torch.compile breaks the graph at each self.log, as with the official fix. torch 2.14 compiles self.log "
    "without the patch, too, with more breaks and the same values. Modules that are not compiled log as without the "
    "patch. fullgraph=True and self.log don't work together: with torch 2.6 and 2.14, they fail at the first self.log "
    "even without the patch. Without the patch, don't compile the module.",
    after=("logged-number-precision",),
)
