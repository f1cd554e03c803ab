"""``pytorch/core/module.py``: what a ``LightningModule`` logs, and what it shows of its optimizers."""

from __future__ import annotations

import sys
from numbers import Number
from typing import Any, Callable, Optional

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _log_number(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def log(self: Any, name: str, value: Any, *args: Any, **kwargs: Any) -> None:
        # A Trainer makes a tensor of it. Fabric hands the number itself to its loggers; without either it is not used.
        if isinstance(value, Number) and self._fabric is None and self._trainer is not None:
            import torch

            dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)
            value = torch.tensor(value, device=self.device, dtype=dtype)
        original(self, name, value, *args, **kwargs)

    return log


def _log_eagerly(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    eager: Optional[Callable[..., None]] = None

    def log(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal eager
        # Without it nothing is compiled. Whether this call comes from compiled code is not asked: torch 2.6 and 2.7
        # answer with a reference that is not the caller's, so that asking often ends the process.
        if "torch._dynamo" not in sys.modules:
            original(self, *args, **kwargs)
            return
        if eager is None:
            eager = _uncompiled(original)
        eager(self, *args, **kwargs)

    # What torch.compiler.disable leaves on a function. Called from a compiled one it is not looked into.
    log._torchdynamo_disable = True  # type: ignore[attr-defined]
    return log


def _uncompiled(function: Callable[..., None]) -> Callable[..., None]:
    """The function, with nothing in it compiled. Torch's own way takes 1 us at each call, a thirtieth of a log."""
    import torch._dynamo

    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 12):  # older ones are left as they were tried
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
    return uncompiled


def _optimizers(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def optimizers(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(self, *args, **kwargs)
        for optimizer in found if isinstance(found, list) else [found]:
            own: Any = vars(optimizer)
            if "_on_after_step" in own and "_optimizer" in own:  # Lightning's wrapper, and not Fabric's
                inner = vars(own["_optimizer"])
                own.update((name, value) for name, value in inner.items() if name not in ("step", "__del__"))
        return found

    return optimizers


PATCHES = (
    Patch(
        name="logged-number-precision",
        title="Logged Python numbers are kept in float32, even in half precision",
        group="correctness",
        affected=(">=2.0.0,<2.1.3",),
        targets=(Target("pytorch.core.module:LightningModule.log", _log_number),),
        calls=("fabric.utilities.device_dtype_mixin:_DeviceDtypeModuleMixin.device()",),
        upstream=Upstream(pull_requests=(19046,), commit="1fcb4ae637", fixed_in="2.1.3"),
        impact=Impact(
            "With precision='bf16-true' or '16-true', Python numbers passed to self.log lose all but the first two or "
            "three digits.",
            ("self.log rounds numbers in bf16-true",),
        ),
    ),
    Patch(
        name="compiled-log",
        title="self.log works in a compiled LightningModule",
        group="compat",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target("pytorch.core.module:LightningModule.log", _log_eagerly),),
        upstream=Upstream(issues=(21836,), pull_requests=(21837,), commit="35c8970ba0", merged=True),
        impact=Impact(
            "A compiled LightningModule that logs anything fails in its first step, with torch 2.12 and later. With "
            "torch 2.2 it fails there too, or, on newer Lightning, logs a wrong epoch mean and says nothing.",
            (
                "InternalTorchDynamoError: AttributeError: 'method' object has no attribute '__dict__'",
                "torch._dynamo.exc.InternalTorchDynamoError in self.log",
            ),
        ),
        equivalent_to="the same training without torch.compile",
        note="torch.compile stops at each self.log and goes on after it, as with the official fix.",
        relied_on="A module that is not compiled logs as before. fullgraph=True and self.log do not go together "
        "without it: with torch 2.6, which can compile self.log, stock 2.5.1 and 2.6.1 end at the first one.",
        relied_on_tests=("tests/patches/test_compiled_log.py::test_what_is_not_compiled_logs_as_before",),
    ),
    Patch(
        name="manual-optimizer-state",
        title="self.optimizers() shows the state that the optimizer trains with",
        group="correctness",
        affected=(">=2.0.0,<2.0.7",),
        targets=(Target("pytorch.core.module:LightningModule.optimizers", _optimizers),),
        upstream=Upstream(pull_requests=(18280,), fixed_in="2.0.7"),
        impact=Impact(
            "After a checkpoint has been loaded, self.optimizers() shows the parameter groups and state from before: "
            "a learning rate that is set through it has no effect.",
            ("setting the learning rate of self.optimizers() has no effect after resume",),
        ),
    ),
)
