"""fabric.setup accepts a module that has no parameters."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints.compiled_names import named_tensors

_FABRIC = "fabric.fabric:Fabric"

_NAME = "_lightning_patches_placeholder"


def _setup(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def setup(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        if not isinstance(module, torch.nn.Module) or any(True for _ in named_tensors(module, ("parameters",))):
            return original(self, module, *args, **kwargs)
        # Fabric reads the device from the first parameter in several places. Provide a parameter during the call.
        module.register_parameter(_NAME, torch.nn.Parameter(torch.empty(0, device="cpu"), requires_grad=False))
        try:
            return original(self, module, *args, **kwargs)
        finally:
            del module._parameters[_NAME]

    return setup


PATCH = Patch(
    group="crash",
    affected=(">=1.9.0,<2.0.2",),
    targets=(Target(f"{_FABRIC}.setup", _setup), Target(f"{_FABRIC}.setup_module", _setup)),
    upstream=Upstream(pull_requests=(17441,), fixed_in="2.0.2"),
    impact=Impact(
        "fabric.setup() or setup_module() raises StopIteration without a message for a module without "
        "parameters, such as a loss.",
        ("initial_device = next(model.parameters()).device",),
        error="StopIteration",
    ),
)
