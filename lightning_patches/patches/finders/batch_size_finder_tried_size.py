"""The batch size finder returns a batch size that it has tried."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream

_SCALING = "pytorch.tuner.batch_size_scaling"


def _run_power_scaling(original: Callable[..., int], namespace: str) -> Callable[..., int]:
    def run_power_scaling(
        trainer: Any, new_size: int, batch_arg_name: str, max_trials: int, params: dict[str, Any]
    ) -> int:
        scaling: Any = upstream_module(namespace, _SCALING)
        size, fitted = new_size, False
        for left in reversed(range(max_trials)):
            scaling.garbage_collection_cuda()
            scaling._reset_progress(trainer)
            try:
                scaling._try_loop_run(trainer, params)
                if not left:
                    break  # the original doubles the size once more, without a trial
                size, changed = scaling._adjust_batch_size(trainer, batch_arg_name, factor=2.0, desc="succeeded")
                if not changed:
                    break
                scaling._reset_dataloaders(trainer)
                fitted = True
            except RuntimeError as error:
                if not scaling.is_oom_error(error):
                    raise
                scaling.garbage_collection_cuda()
                size, _ = scaling._adjust_batch_size(trainer, batch_arg_name, factor=0.5, desc="failed")
                scaling._reset_dataloaders(trainer)
                if fitted:
                    break
        return size

    return run_power_scaling


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the batch size that is found"),
    affected=(">=2.0.0,<2.6.0",),
    targets=(Target(f"{_SCALING}:_run_power_scaling", _run_power_scaling),),
    upstream=Upstream(
        pull_requests=(21187,),
        commit="3998b5d795",
        fixed_in="2.6.0",
        tests=("tests/tests_pytorch/tuner/test_scale_batch_size.py::test_scale_batch_size_max_trials_modes",),
    ),
    impact=Impact(
        "If the batch size finder stops after max_trials in its default mode, it sets twice the batch size of "
        "its last trial; training may then run out of memory.",
        ("CUDA out of memory after scale_batch_size", "the batch size found was never tried"),
        consequences=(
            Consequence(
                ("CUDA out of memory",),
                "Finished batch size finder, will continue with full run using batch size",
                "the batch size finder ran earlier, and may have doubled the last size that it tried",
            ),
        ),
    ),
    opt_in="users who let the batch size finder stop at max_trials on releases below 2.6.0, and train with its result",
    signs=("scale_batch_size", "BatchSizeFinder"),
    note="Opt-in because programs that halve the result, as several public ones do, would train with half of "
    "the size that was tried. The arguments margin and max_val of 2.6.0, which give smaller sizes, are "
    "not backported. With mode 'binsearch' nothing changes, because the affected releases already return "
    "a size that they have tried.",
)
