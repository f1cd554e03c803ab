"""Warn when the batch size finder returns an untried batch size because it reached max_val."""

from _expect import same, warns

EXPECT = [
    warns(
        ["power", "binsearch"],
        "untried limit causes one warning",
        "but the largest that it has tried is 12.",
        program="batch_size_finder_limit",
        on=("2.6.0", "2.6.6"),
    ),
    same(["oom", "small", "trials"], "warning is absent if the size was tried", program="batch_size_finder_limit"),
    same(
        "power",
        "warning is absent if the opt in patch is selected",
        compare="warnings",
        toggle="default,batch-size-finder-limit",
        program="batch_size_finder_limit",
    ),
]
