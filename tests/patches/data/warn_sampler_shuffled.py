"""Warn when Lightning shuffles the order of a custom sampler."""

from _expect import same, warns, whole_run

EXPECT = [
    warns(
        "",
        "lost order of a custom sampler causes a warning",
        "The samples that Backwards chooses are shuffled",
        stock=whole_run(
            lambda result: all(rank["seen"] != sorted(rank["seen"], reverse=True) for rank in result.observations)
        ),
        program="sampler_order_kept",
        on=("2.0.0", "2.6.6"),
    ),
    # The sampler is one of torch's, or Lightning does not replace it.
    same(["torch", "divides"], "warning is absent if the order is kept", program="sampler_order_kept"),
]
