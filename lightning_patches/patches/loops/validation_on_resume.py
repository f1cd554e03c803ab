"""A run that was saved at the end of a validation does not begin with another one when it is resumed."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any, *args: Any) -> None:
        validation = self.val_loop
        progress = validation.batch_progress
        ended = progress.is_last_batch and progress.current.completed == progress.current.ready
        # The validation is still restarting only where no batch was trained before it. Not by `Target.stock`, which
        # would leave out the loops of a class of the program's own.
        if not (self._restarting and validation._restarting and ended) or "_should_check_val_fx" in vars(self):
            original(self, *args)
            return
        self._should_check_val_fx = lambda *args: False
        try:
            original(self, *args)
        finally:
            del self._should_check_val_fx

    return on_advance_end


PATCH = Patch(
    name="validation-on-resume",
    added="0.2.0",
    title="A resumed run does not validate one batch before it trains",
    group="correctness",
    changes_results=Effect("numbers", "a validation less in a resumed run, and what is random after it"),
    affected=(">=2.0.0,<2.5.0",),
    targets=(Target(f"{_EPOCH_LOOP}.on_advance_end", _on_advance_end),),
    upstream=Upstream(
        issues=(19549, 20277, 20288, 18595),
        pull_requests=(20379,),
        fixed_in="2.5.0",
    ),
    impact=Impact(
        "A run that is resumed from a checkpoint which was saved at the end of a validation validates one batch before "
        "it trains: the metric of that batch is logged, and may be called the best.",
        (
            "validation runs first after resuming from a checkpoint",
            "validation metric is wrong after resuming",
            "SkipResumeTrainingValidationLoop, NoValOnRestartTrainingLoop: an epoch loop of one's own",
        ),
    ),
    note="A validation that was not over when the checkpoint was saved is gone on with, as without the patch. What "
    "asks for a metric of a validation at the end of that epoch, such as "
    "EarlyStopping(check_on_train_epoch_end=True), finds none if there is no other validation in it, as from "
    "2.5.0 on.",
    after=("validation-own-randomness",),
)
