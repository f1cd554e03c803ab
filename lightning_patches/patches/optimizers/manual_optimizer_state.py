"""self.optimizers() returns wrappers with the optimizer's current state."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_OWN = {"step", "__del__", "_optimizer", "_strategy", "_on_before_step", "_on_after_step"}
"""Attributes that belong to Lightning's wrapper. An optimizer that wraps another one may have the same names."""


def _optimizers(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def optimizers(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(self, *args, **kwargs)
        for optimizer in found if isinstance(found, list) else [found]:
            own: Any = optimizer.__dict__
            if "_on_after_step" in own and "_optimizer" in own:  # Lightning's wrapper, and not Fabric's
                inner = own["_optimizer"].__dict__
                own.update((name, value) for name, value in inner.items() if name not in _OWN)
        return found

    return optimizers


PATCH = Patch(
    group="correctness",
    changes_results=Effect(
        "numbers", "a learning rate that a program sets through self.optimizers() after a resume is used"
    ),
    affected=(">=1.8.0,<2.0.7",),
    targets=(Target("pytorch.core.module:LightningModule.optimizers", _optimizers),),
    upstream=Upstream(pull_requests=(18280,), fixed_in="2.0.7"),
    impact=Impact(
        "After a checkpoint is loaded, self.optimizers() returns wrappers with the previous parameter groups "
        "and state: setting a learning rate through them has no effect.",
        ("setting the learning rate of self.optimizers() has no effect after resume",),
    ),
)
