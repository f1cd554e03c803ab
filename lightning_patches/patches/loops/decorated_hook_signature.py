"""A step below a decorator gets the arguments that it names itself."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream, name_and_title


def _is_param_in_hook_signature(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def is_param_in_hook_signature(hook_fx: Any, *args: Any, **kwargs: Any) -> bool:
        return original(inspect.unwrap(hook_fx), *args, **kwargs)

    return is_param_in_hook_signature


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="crash",
    changes_results=Effect("how it ends", "a decorator may be called with other arguments"),
    affected=(">=2.0.0,<2.0.3",),
    targets=(Target("pytorch.utilities.signature_utils:is_param_in_hook_signature", _is_param_in_hook_signature),),
    upstream=Upstream(pull_requests=(17507,), commit="3867045de4", fixed_in="2.0.3"),
    impact=Impact(
        "A training_step(self, batch) or training_step(self, dataloader_iter) below a decorator that takes *args and "
        "uses functools.wraps is given batch and batch_idx, and ends the training.",
        (
            "a decorated training_step gets too many arguments",
            "training_step() takes 2 positional arguments but 3 were given",
        ),
        error="TypeError: ....training_step() takes 2 positional arguments but 3 were given",
        frames=("/pytorch/strategies/strategy.py",),
    ),
    opt_in="users who put a decorator on a training_step without batch_idx, on releases below 2.0.3",
    note="Opt-in, as a decorator that takes batch_idx and does not pass it on is then called without it, as from 2.0.3 "
    "on. training_step(self, batch, batch_idx) is the way round. Goes further than upstream: several decorators are "
    "looked below, while 2.0.3 to 2.6.6 look below one.",
    after=("hook-signature",),
)
