"""A model summary that fails leaves the module as it was, and takes jagged tensors."""

from __future__ import annotations

import traceback
from contextlib import nullcontext
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.loops._way_out import named_modules


def _forward_example_input(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _forward_example_input(self: Any) -> None:
        modes = [(module, module.training) for _, module in named_modules(self._model)]
        counter = vars(self).get("_flop_counter")

        def forward() -> None:
            try:
                original(self)
            except BaseException:
                for module, mode in modes:
                    module.training = mode
                raise

        try:
            try:
                forward()
            except Exception as error:
                if counter is None or not _is_refused_by_counter(error):
                    raise
                self._flop_counter = nullcontext()
                try:
                    forward()
                finally:
                    self._flop_counter = counter
        except BaseException:
            for module, _ in modes:
                _remove_hooks(module)
            raise

    return _forward_example_input


def _is_refused_by_counter(error: BaseException) -> bool:
    files = [frame.f_code.co_filename.replace("\\", "/") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(f.endswith("/torch/utils/flop_counter.py") for f in files) and any("/torch/nested/" in f for f in files)


def _remove_hooks(module: Any) -> None:
    for key, hook in list(module._forward_hooks.items()):
        if getattr(hook, "__qualname__", "").startswith("LayerSummary._register_hook."):
            del module._forward_hooks[key]
            getattr(module, "_forward_hooks_with_kwargs", {}).pop(key, None)


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "training after a model summary that ended in an error"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(
            "pytorch.utilities.model_summary.model_summary:ModelSummary._forward_example_input", _forward_example_input
        ),
    ),
    upstream=Upstream(issues=(21588,), proposed=(21780,)),
    impact=Impact(
        "If forward fails with example_input_array, the module stays in evaluation mode, with hooks of the summary. "
        "From 2.6.0 on, torch's FLOP counter makes it fail with jagged tensors.",
        (
            "model is in eval mode after ModelSummary failed",
            "forward hooks of the model summary stay on the model",
            "ModelSummary fails with a jagged or nested tensor in example_input_array",
        ),
        would_tell="that model.training is False after an error in the model summary",
    ),
)
