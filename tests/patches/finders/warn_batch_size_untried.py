"""Warn when the batch size finder returns a batch size that it has not tried."""

from _expect import patched, same, warns

RELEASES = ("2.0.0", "2.5.6")
RETURNS = "It returns {}, but the largest batch size that it has tried is {}."

EXPECT = [
    warns(
        "power",
        "untried size causes one warning",
        RETURNS.format(16, 8),
        program="batch_size_finder_tried_size",
        on=RELEASES,
    ),
    warns(
        "one",
        "untried size after one trial causes one warning",
        RETURNS.format(4, 2),
        program="batch_size_finder_tried_size",
        on=RELEASES,
    ),
    same(
        ["oom", "first", "small", "binsearch"],
        "warning is absent if the size was tried",
        program="batch_size_finder_tried_size",
    ),
    patched(
        "power",
        "warning is absent if the opt-in patch is selected",
        lambda seen: seen["warnings"] == [] and seen["found"] in seen["tried"],
        toggle="default,batch-size-finder-tried-size",
        program="batch_size_finder_tried_size",
    ),
]
