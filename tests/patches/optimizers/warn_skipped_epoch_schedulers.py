"""Warn when no scheduler was stepped for an epoch that on_train_batch_start ended."""

from _expect import patched, same, warns

EXPECT = [
    warns(
        ["epoch", "plateau"],
        "skipped step causes one warning",
        "on_train_batch_start ended the epoch by returning -1",
        program="skipped_epoch_schedulers",
        on=("2.0.0", "2.5.6"),
    ),
    same(
        ["by hand", "step", "whole", "error"],
        "warning is absent if no step is missing",
        program="skipped_epoch_schedulers",
    ),
    patched(
        "epoch",
        "warning is absent if the opt-in patch is selected",
        lambda seen: seen["warnings"] == [] and len(set(seen["rates"])) == 4,
        toggle="default,skipped-epoch-schedulers",
        program="skipped_epoch_schedulers",
    ),
]
