"""A stop requested before min_epochs causes no validation after each batch."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _should_check_val_fx(original: Callable[[Any], bool], namespace: str) -> Callable[[Any], bool]:
    def should_check_val_fx(self: Any) -> bool:
        trainer = self.trainer
        requested = vars(trainer).get("should_stop", False)
        if not requested or trainer.fit_loop._should_stop_early:
            return original(self)
        trainer.should_stop = False
        try:
            return original(self)
        finally:
            trainer.should_stop = requested

    return should_check_val_fx


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "how often validation runs between the request to stop and the minimum"),
    affected=(">=1.8.0,<1.9.2",),
    targets=(
        Target("pytorch.loops.epoch.training_epoch_loop:TrainingEpochLoop._should_check_val_fx", _should_check_val_fx),
    ),
    upstream=Upstream(pull_requests=(16719,), fixed_in="1.9.2"),
    impact=Impact(
        "After EarlyStopping or a callback requests a stop, validation runs after each batch until min_epochs or "
        "min_steps is reached.",
        ("validation runs after every batch with EarlyStopping and min_epochs",),
    ),
    opt_in="users who combine EarlyStopping with min_epochs or min_steps, on releases below 1.9.2",
    signs=("EarlyStopping min_epochs", "EarlyStopping min_steps"),
    note="Opt-in because programs with these validations end well, and may use their metrics. Without the patch, "
    "remove min_epochs and min_steps, and begin EarlyStopping later.",
)
