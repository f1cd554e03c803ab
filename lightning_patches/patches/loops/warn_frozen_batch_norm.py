"""Warn when Lightning below 2.2 switches frozen batch norm back to training mode."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Iterator

from lightning_patches.patch import Target
from lightning_patches.patches._warning import Notes, observe, stored, warn, warning
from lightning_patches.patches.checkpoints.compiled_names import parts
from lightning_patches.patches.loops import eval_mode_kept

_frozen = Notes()
"""By Trainer: its model, and the batch norm layers that were in evaluation mode before Lightning switched modules.

All references are weak, since a model refers to its Trainer.
"""


def _run_sanity_check(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=_remember)


def _on_evaluation_model_eval(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=lambda self: _remember(self.trainer))


def _remember(trainer: Any) -> None:
    model = trainer._accelerator_connector.strategy._lightning_module  # a Trainer subclass may override properties
    known, _ = _frozen.find(trainer, (weakref.ref(trainer), ()))
    # If the whole model is in evaluation mode, it has no single layers that are frozen.
    if stored(model, "training") and known() is not model:
        frozen = [(name, weakref.ref(part)) for name, part in _batch_norms(model) if not stored(part, "training")]
        _frozen.add(trainer, (weakref.ref(model), frozen))


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=_before_advance_end)


def _before_advance_end(self: Any, *_: Any, **__: Any) -> None:
    # Every hook before the batch and training_step have run, in which the program may set the mode again.
    frozen = _frozen.take(self.trainer, (None, ()))[1] if _frozen else ()
    alive = [(name, part()) for name, part in frozen]
    switched = [name for name, part in alive if part is not None and stored(part, "training")]
    if switched:
        more = f" and {len(switched) - 1} more" if len(switched) > 1 else ""
        warn(
            "frozen-batch-norm",
            f"The batch norm layer {switched[0]}{more} is in training mode, though the model had put it into "
            "evaluation mode: Lightning below 2.2 switches all modules when fit starts and after each validation. "
            "To keep it frozen, set LIGHTNING_PATCHES=default,eval-mode-kept, or override train() in the "
            "LightningModule (super().train(mode), layer.eval(), return self), or move to Lightning 2.2.0.",
        )


def _batch_norms(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the batch norm layers with running statistics, without ``modules``, which the program may override."""
    import torch

    for path, part in parts(module):
        if issubclass(type(part), torch.nn.modules.batchnorm._BatchNorm) and stored(part, "track_running_stats"):
            yield path, part


PATCH = warning(
    Target("pytorch.trainer.trainer:Trainer._run_sanity_check", _run_sanity_check),
    Target("pytorch.loops.evaluation_loop:_EvaluationLoop._on_evaluation_model_eval", _on_evaluation_model_eval),
    Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_advance_end", _on_advance_end),
    fixes=(eval_mode_kept,),
    added="0.2.0",
    after=("validation-on-resume", "validation-own-randomness"),
    when=", after the first batch that changes the statistics",
    note="From 2.2.0 on, each module keeps its mode.",
)
