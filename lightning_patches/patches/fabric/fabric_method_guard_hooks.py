"""A method call that Fabric refuses leaves no hooks on the model."""

import functools
import inspect
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _guard(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _wrap_method_with_module_call_tracker(self: Any, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(method)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            # Wrapped again for each call, since a wrapper that has refused once always refuses.
            tracked = original(self, method, name)
            try:
                return tracked(*args, **kwargs)
            except BaseException:
                _remove(inspect.getclosurevars(tracked).nonlocals.get("hook"), self._original_module)
                raise

        return guarded

    return _wrap_method_with_module_call_tracker


def _remove(hook: Any, root: Any) -> None:
    """Remove a forward hook from every module below ``root``."""
    if hook is None:
        return
    for module in root.modules():
        for key in [key for key, value in module._forward_hooks.items() if value is hook]:
            del module._forward_hooks[key]


PATCH = Patch(
    group="crash",
    affected=(">=2.1.1,<=2.6.6",),
    targets=(Target("fabric.wrappers:_FabricModule._wrap_method_with_module_call_tracker", _guard),),
    upstream=Upstream(pull_requests=(21945,)),
    impact=Impact(
        "After Fabric refuses a method call on a model, or the method fails, each module of the model keeps "
        "one more forward hook: the model can no longer be pickled and gets slower. If a program stored the "
        "method in a variable, Fabric refuses every later call of it.",
        (
            "Can't get local object '_FabricModule._wrap_method_with_module_call_tracker.<locals>.hook'",
            "Can't pickle local object '_FabricModule._wrap_method_with_module_call_tracker.<locals>.hook'",
        ),
        error="AttributeError: Can't pickle local object "
        "'_FabricModule._wrap_method_with_module_call_tracker.<locals>.hook'",
    ),
    note="The official fix is proposed (pull request 21945), but not released. Accepted calls are unchanged, "
    "and refused or failing calls raise the same error. A method that was stored in a variable can be "
    "called again after a refusal. Without the patch, avoid the call that Fabric refuses.",
)
