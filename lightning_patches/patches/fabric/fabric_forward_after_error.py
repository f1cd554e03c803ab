"""After an error in a marked method of a Fabric module, its forward is called again."""

import functools
import inspect
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _redirection_through_forward(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _redirection_through_forward(self: Any, method_name: str) -> Callable[..., Any]:
        call = original(self, method_name)

        @functools.wraps(call)
        def call_forward_module(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs)
            except BaseException:
                _restore(self._original_module, inspect.getclosurevars(call).nonlocals)
                raise

        return call_forward_module

    return _redirection_through_forward


def _restore(module: Any, made: Any) -> None:
    """Undo the replacement of ``forward`` if the method was not reached, which undoes it."""
    replaced = made.get("wrapped_forward")
    if replaced is not None and module.__dict__.get("forward") is replaced:
        module.forward = inspect.getclosurevars(replaced).nonlocals["original_forward"]


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the next call of the module runs its forward"),
    affected=(">=2.0.2,<=2.6.6",),
    targets=(Target("fabric.wrappers:_FabricModule._redirection_through_forward", _redirection_through_forward),),
    upstream=Upstream(),
    impact=Impact(
        "If a call of `training_step` or of a marked method of a Fabric module raises an error before it reaches the "
        "method, for example in a hook of DDP, and the program continues, then the next `model(x)` runs the method "
        "and not `forward`.",
        ("model(x) runs training_step after a caught error",),
    ),
    note="The strategy must wrap the module, as DDP and FSDP do. Without the patch, delete the attribute that is left: "
    "`del model.module.forward`.",
    added="0.3.0",
)
