"""Warn when a resumed run has repeated a validation on one batch before it trains."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title
from lightning_patches.patches.loops.validation_on_resume import validates_again


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any, *args: Any, **kwargs: Any) -> None:
        again = validates_again(self)
        original(self, *args, **kwargs)
        # Some programs turn this validation into a sanity check, in which Lightning does not set _has_run.
        if again and self.val_loop._has_run:
            notices.warn_once(
                "validation-on-resume",
                "This run was resumed from a checkpoint that was saved at the end of a validation, and has repeated "
                "that validation on one batch, as Lightning below 2.5.0 does. Its metrics are wrong, and callbacks and "
                "loggers have seen them. To leave it out, set LIGHTNING_PATCHES=default,validation-on-resume, or use "
                "Lightning 2.5.0 or later.",
            )

    return on_advance_end


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<2.5.0",),
    targets=(Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.on_advance_end", _on_advance_end),),
    upstream=Upstream(issues=(19549, 20277, 20288, 18595), pull_requests=(20379,), fixed_in="2.5.0"),
    impact=Impact(
        "A run that is resumed from a checkpoint saved at the end of a validation first validates one batch: the "
        "metric of that batch is logged, and may become the best one."
    ),
    after=("validation-on-resume", "validation-own-randomness", "warn-frozen-batch-norm"),
    fixed_by=("validation-on-resume",),
    note="This patch fixes nothing: it warns once, after the first such validation, unless the program has "
    "skipped that validation or turned it into a sanity check. The opt-in patch validation-on-resume "
    "fixes the bug.",
)
