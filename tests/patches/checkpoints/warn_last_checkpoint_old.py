"""Warn when last.ckpt is not the newest checkpoint of a run."""

from _expect import patched, same, warns

EXPECT = [
    warns(
        ["worse", "validation"],
        "last checkpoint of the best epoch causes a warning",
        "last.ckpt is of step 2, and the run ended at step 10",
        program="last_checkpoint_newest",
        on=("2.6.0", "2.6.6"),
    ),
    same(
        ["better", "link"], "warning is absent if the last checkpoint is the newest", program="last_checkpoint_newest"
    ),
    same("worse", "warning is absent on an unaffected release", program="last_checkpoint_newest", on="2.5.6"),
    same(
        "worse",
        "warning is absent if the opt in patch is selected",
        compare="warnings",
        toggle="default,last-checkpoint-newest",
        program="last_checkpoint_newest",
    ),
    patched(
        "resumed",
        "last checkpoint of an earlier run causes a warning",
        lambda seen: any("The last checkpoint of this run is last-v1.ckpt." in warning for warning in seen["warnings"]),
        program="last_checkpoint_newest",
        on=("2.0.0", "2.6.6"),
    ),
    same(
        "resumed",
        "files of the resumed run are unchanged",
        lambda seen: "last-v1.ckpt" in seen["files"],
        compare="files",
        program="last_checkpoint_newest",
        on=("2.0.0", "2.6.6"),
    ),
]
