"""A decorated training_step gets only the arguments that it declares."""

import inspect
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _is_param_in_hook_signature(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def is_param_in_hook_signature(hook_fx: Any, *args: Any, **kwargs: Any) -> bool:
        return original(inspect.unwrap(hook_fx), *args, **kwargs)

    return is_param_in_hook_signature


PATCH = Patch(
    added="0.2.0",
    group="crash",
    changes_results=Effect("how it ends", "a decorator may be called with other arguments"),
    affected=(">=1.8.0,<2.0.3",),
    targets=(Target("pytorch.utilities.signature_utils:is_param_in_hook_signature", _is_param_in_hook_signature),),
    upstream=Upstream(pull_requests=(17507,), commit="3867045de4", fixed_in="2.0.3"),
    impact=Impact(
        "If a decorator with *args and functools.wraps is applied to training_step(self, batch) or "
        "training_step(self, dataloader_iter), Lightning passes both batch and batch_idx, and training fails.",
        (
            "a decorated training_step gets too many arguments",
            "training_step() takes 2 positional arguments but 3 were given",
        ),
        error="TypeError: ....training_step() takes 2 positional arguments but 3 were given",
        frames=("/pytorch/strategies/strategy.py",),
    ),
    opt_in="users who decorate a training_step without batch_idx, on releases below 2.0.3",
    note="Opt-in because a decorator that takes batch_idx and does not pass it on is then called without it, "
    "as from 2.0.3 on. The patch looks through several decorators; 2.0.3 to 2.6.6 look through one. "
    "Without the patch, declare training_step(self, batch, batch_idx).",
    after=("hook-signature",),
)
