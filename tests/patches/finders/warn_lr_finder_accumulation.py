"""Warn when the learning rate finder leaves out optimizer steps under accumulation."""

from _expect import same, warns

EXPECT = [
    warns(
        ["none", "some"],
        "left out steps are warned of once",
        "no multiple of accumulate_grad_batches",
        program="lr_finder_accumulation",
        on=("2.0.0", "2.6.6"),
    ),
    same("all", "search that records all steps gives no warning", program="lr_finder_accumulation"),
    same(
        "some",
        "no warning with the fix",
        compare=lambda ranks: [rank["warnings"] for rank in ranks],
        toggle="default,lr-finder-accumulation",
        program="lr_finder_accumulation",
    ),
]
