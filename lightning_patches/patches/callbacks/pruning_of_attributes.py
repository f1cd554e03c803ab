"""ModelPruning prunes parameters, not other attributes with the same names."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _sanitize(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def sanitize_parameters_to_prune(pl_module: Any, parameters_to_prune: Any = (), *args: Any, **kwargs: Any) -> Any:
        found = original(pl_module, parameters_to_prune, *args, **kwargs)
        if parameters_to_prune:
            return found
        from torch import Tensor

        # A tensor that is not a parameter is still pruned.
        return [(module, name) for module, name in found if isinstance(getattr(module, name), Tensor)]

    return sanitize_parameters_to_prune


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.5.2",),
    targets=(Target("pytorch.callbacks.pruning:ModelPruning.sanitize_parameters_to_prune", _sanitize),),
    upstream=Upstream(
        issues=(10835,),
        pull_requests=(20783,),
        commit="cb1afbe377",
        fixed_in="2.5.2",
        tests=("tests/tests_pytorch/callbacks/test_pruning.py::test_original_issue_reproduction",),
    ),
    impact=Impact(
        "ModelPruning raises an AttributeError if a module has an attribute named weight or bias that is a flag or a "
        "number.",
        ("AttributeError: 'bool' object has no attribute", "ModelPruning AttributeError is_cuda"),
        error="AttributeError: 'bool' object has no attribute 'data'",
    ),
    note="Tensors that are not parameters are still pruned. The official fix skips them.",
)
