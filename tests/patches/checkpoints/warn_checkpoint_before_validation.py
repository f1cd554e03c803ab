"""Warn when a checkpoint is ranked by the metric of the previous validation."""

from _expect import same, warns

EXPECT = [
    warns(
        "within",
        "checkpoint with an old metric causes one warning",
        "just before the validation of that step, and ranks it by the previous value of 'metric'",
        program="checkpoint_after_own_validation",
        on=("2.0.0", "2.6.6"),
    ),
    same(
        ["subclass", "apart", "no-monitor", "epochs"],
        "warning is absent for other checkpoints",
        program="checkpoint_after_own_validation",
    ),
    same(
        "within",
        "warning is absent if the opt in patch is selected",
        compare="warnings",
        toggle="default,checkpoint-after-own-validation",
        program="checkpoint_after_own_validation",
    ),
]
