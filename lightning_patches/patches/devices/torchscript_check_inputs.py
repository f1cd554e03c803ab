"""to_torchscript checks a trace on the model's device."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _to_torchscript(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def to_torchscript(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("check_inputs") is not None:
            # Use Lightning's transfer, not the program's hooks, which the original does not call for these inputs.
            move = upstream_module(namespace, "pytorch.core.hooks").DataHooks.transfer_batch_to_device
            kwargs["check_inputs"] = move(self, kwargs["check_inputs"], self.device, 0)
        return original(self, *args, **kwargs)

    return to_torchscript


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.5.2",),
    targets=(Target("pytorch.core.module:LightningModule.to_torchscript", _to_torchscript),),
    upstream=Upstream(pull_requests=(20873,), fixed_in="2.5.2"),
    impact=Impact(
        "to_torchscript(method='trace', check_inputs=...) fails for a model on a GPU, because it moves "
        "example_inputs to the GPU and leaves check_inputs on the CPU.",
        ("to_torchscript leaves check_inputs on the CPU",),
    ),
    note="The model's transfer hooks are not called for check_inputs; 2.5.2 calls them.",
)
