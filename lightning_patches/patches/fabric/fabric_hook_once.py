"""A tensor that the forward of a Fabric module returns again gets one hook."""

import functools
from typing import Any, Callable

from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _register_backward_hook(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    check = stock_of(original).__globals__.get("_backward_hook")

    def is_check(hook: Any) -> bool:
        return type(hook) is functools.partial and hook.func is check

    def _register_backward_hook(self: Any, tensor: Any) -> Any:
        output = original(self, tensor)
        if tensor.requires_grad and tensor.is_leaf:  # other tensors are new in each forward
            hooks = tensor._backward_hooks or {}
            *earlier, newest = hooks or (None,)
            if is_check(hooks.get(newest)) and any(
                is_check(hooks[key]) and hooks[key].args == hooks[newest].args for key in earlier
            ):
                del hooks[newest]
        return output

    return _register_backward_hook


PATCH = Patch(
    group="performance",
    affected=(">=2.3.0,<=2.6.6",),
    targets=(Target("fabric.wrappers:_FabricModule._register_backward_hook", _register_backward_hook),),
    upstream=Upstream(),
    impact=Impact(
        "If the forward of a Fabric module returns a parameter, as graph and recommender models do with their "
        "embedding tables, each call adds one more hook to it: steps get slower without end. After 4,000 steps, a "
        "step takes 7 to 9 times as long.",
        ("each step of a Fabric program takes longer than the one before",),
    ),
    note="Without the patch, return a view of the parameter: `weight.view_as(weight)`.",
    added="0.3.0",
)
