"""Warn when a resumed ModelCheckpoint does not know its newest files."""

from _expect import same, warns

EXPECT = [
    warns(
        "last_first",
        "unknown best checkpoint causes one warning",
        "last-epoch=1.ckpt was saved before ModelCheckpoint(monitor='loss') saved best-epoch=1.ckpt",
        program="monitored_checkpoint_first",
        on=("1.8.0", "1.9.5", "2.0.0", "2.6.6"),
    ),
    same(
        ["best_first", "whole", "alone", "other", "deleted"],
        "warning is absent for other runs",
        program="monitored_checkpoint_first",
    ),
    same(
        "last_first",
        "warning is absent if the opt in patch is selected",
        compare="warnings",
        toggle="default,monitored-checkpoint-first",
        program="monitored_checkpoint_first",
    ),
]
