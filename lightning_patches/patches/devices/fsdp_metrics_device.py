"""FSDP moves a model's torchmetrics to the GPU."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _wrap(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def wrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        wrapped = original(self, *args, **kwargs)
        for metric in _metrics(wrapped):
            metric.to(self.root_device)
        return wrapped

    return wrap


def _metrics(module: Any) -> list[Any]:
    try:
        from torchmetrics import Metric
    except ImportError:  # Fabric does not need it
        return []
    return [one for one in module.modules() if isinstance(one, Metric)]


PATCH = Patch(
    added="0.2.0",
    group="crash",
    changes_results=Effect("how it ends", "under FSDP, updating a metric with CPU tensors raises an error"),
    affected=(">=2.0.0,<2.1.2",),
    targets=(
        Target("pytorch.strategies.fsdp:FSDPStrategy._setup_model", _wrap),
        Target("fabric.strategies.fsdp:FSDPStrategy.setup_module", _wrap),
    ),
    upstream=Upstream(
        pull_requests=(18954,),
        commit="964364b3bb",
        fixed_in="2.1.2",
        tests=("tests/tests_pytorch/strategies/test_fsdp.py::test_fsdp_modules_without_parameters",),
    ),
    impact=Impact(
        "Under FSDP, torchmetrics metrics that are attributes of the model stay on the CPU: the first update with GPU "
        "tensors ends the training.",
        ("Encountered different devices in metric calculation", "torchmetrics stay on the CPU with FSDP"),
        error="RuntimeError: Encountered different devices in metric calculation ...",
    ),
    after=("align-devices",),
    opt_in="users who have torchmetrics in a model under FSDP, on releases below 2.1.2",
    note="Opt-in because a program that updates its metrics with CPU tensors, such as update(x.cpu()), works without "
    "the patch and would fail with it. Without the patch, call metric.to(self.device) in on_fit_start.",
)
