"""Mixed precision under FSDP starts with full-precision parameters."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _module_init_context(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def module_init_context(self: Any) -> Any:
        # FSDP gets the precision of its computation from mixed_precision_config. With mixed precision, the parameters
        # that FSDP shards and the optimizer updates must be created in full precision.
        utils = upstream_module(namespace, "fabric.plugins.precision.utils")
        return utils._DtypeContextManager(self._desired_input_dtype)

    return module_init_context


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "parameters and optimizer state have full precision"),
    affected=(">=2.6.0,<2.6.4",),
    targets=tuple(
        Target(f"{part}.plugins.precision.fsdp:FSDPPrecision.module_init_context", _module_init_context)
        for part in ("fabric", "pytorch")
    ),
    upstream=Upstream(
        pull_requests=(21586,),
        commit="6c92678453",
        fixed_in="2.6.4",
        tests=("tests/tests_fabric/plugins/precision/test_fsdp.py::test_module_init_context",),
    ),
    impact=Impact(
        "Under FSDP with precision 16-mixed or bf16-mixed, a model created in configure_model() or "
        "Fabric.init_module() has half-precision parameters, and the optimizer works in half precision: small "
        "steps are lost by rounding, without a warning.",
        ("FSDP parameters are float16 with precision 16-mixed", "loss stagnates with FSDP and bf16-mixed"),
    ),
    note="Parameters take twice as much memory as in the affected releases, as in all other releases.",
)
