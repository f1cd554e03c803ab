"""Warn when ModelCheckpoint ignores train_time_interval."""

from _expect import patched, same, warns

EXPECT = [
    warns(
        ["", "hour"],
        "missing checkpoint causes one warning",
        "No checkpoint is saved at train_time_interval",
        program="manual_optimization_time_interval",
        on=("2.6.0", "2.6.6"),
    ),
    # With automatic optimization, and without an interval.
    same(["automatic", "steps"], "warning is absent in other cases", program="manual_optimization_time_interval"),
    patched(
        "",
        "warning is absent if the opt-in patch is selected",
        {"warnings": [], "steps": [1, 2, 3, 4]},
        toggle="default,manual-optimization-time-interval",
        program="manual_optimization_time_interval",
    ),
]
