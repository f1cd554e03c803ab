"""Warn when Lightning below 2.2 switches frozen batch norm back to training mode."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Iterator

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title
from lightning_patches.patches.checkpoints.compiled_names import parts

_frozen: weakref.WeakKeyDictionary[Any, tuple[Any, list[tuple[str, Any]]]] = weakref.WeakKeyDictionary()
"""By Trainer: its model, and the batch norm layers that were in evaluation mode before Lightning switched modules.

All references are weak, since a model refers to its Trainer.
"""


def _run_sanity_check(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _run_sanity_check(self: Any) -> None:
        _remember(self)
        original(self)

    return _run_sanity_check


def _on_evaluation_model_eval(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _on_evaluation_model_eval(self: Any) -> None:
        _remember(self.trainer)
        original(self)

    return _on_evaluation_model_eval


def _remember(trainer: Any) -> None:
    model = trainer._accelerator_connector.strategy._lightning_module  # a Trainer subclass may override properties
    known, _ = _frozen.get(trainer, (weakref.ref(trainer), ()))
    if model.training and known() is not model:  # otherwise the whole model was in evaluation mode, not single layers
        frozen = [(name, weakref.ref(part)) for name, part in _batch_norms(model) if not part.training]
        _frozen[trainer] = weakref.ref(model), frozen


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any, *args: Any, **kwargs: Any) -> None:
        # At this point, every hook before the batch and training_step have run, in which the program may set the mode
        # again.
        _, frozen = _frozen.pop(self.trainer, (None, ()))
        switched = [name for name, part in frozen if getattr(part(), "training", False)]
        if switched:
            more = f" and {len(switched) - 1} more" if len(switched) > 1 else ""
            notices.warn_once(
                "frozen-batch-norm",
                f"The batch norm layer {switched[0]}{more} is in training mode, though the model had put it into "
                "evaluation mode: Lightning below 2.2 switches all modules when fit starts and after each validation. "
                "To keep it frozen, set LIGHTNING_PATCHES=default,eval-mode-kept, or override train() in the "
                "LightningModule (super().train(mode), layer.eval(), return self), or move to Lightning 2.2.0.",
            )
        original(self, *args, **kwargs)

    return on_advance_end


def _batch_norms(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the batch norm layers with running statistics, without ``modules``, which the program may override."""
    import torch

    for path, part in parts(module):
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.track_running_stats:
            yield path, part


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    group="correctness",
    affected=(">=2.0.0,<2.2.0",),
    targets=(
        Target("pytorch.trainer.trainer:Trainer._run_sanity_check", _run_sanity_check),
        Target("pytorch.loops.evaluation_loop:_EvaluationLoop._on_evaluation_model_eval", _on_evaluation_model_eval),
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_advance_end", _on_advance_end),
    ),
    upstream=Upstream(issues=(18930,), pull_requests=(18951,), fixed_in="2.2.0"),
    impact=Impact(
        "A batch norm layer that the model has put into evaluation mode is switched back to training mode when "
        "fit starts and after each validation, and its statistics change.",
        ("frozen batch norm changes its running_mean", "module.eval() in __init__ has no effect during fit"),
    ),
    added="0.2.0",
    after=("eval-mode-kept", "validation-on-resume", "validation-own-randomness"),
    note="This patch fixes nothing: it warns once, after the first batch that changes the statistics. From "
    "2.2.0 on each module keeps its mode; below 2.2.0, the opt-in patch eval-mode-kept does the same.",
    fixed_by=("eval-mode-kept",),
)
