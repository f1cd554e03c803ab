"""Warn when a resumed EarlyStopping takes a different patience from the checkpoint."""

from _expect import same, warns

EXPECT = [
    warns(
        "longer",
        "patience of the checkpoint causes one warning",
        "EarlyStopping has the patience of the checkpoint, 3, and not the 8 that the program gives.",
        program="early_stopping_patience",
        on=("2.0.0", "2.6.6"),
    ),
    same(["same", "fresh"], "warning is absent if the patience is the same", program="early_stopping_patience"),
    same(
        "longer",
        "warning is absent if the opt in patch is selected",
        compare="warnings",
        toggle="default,early-stopping-patience",
        program="early_stopping_patience",
    ),
]
