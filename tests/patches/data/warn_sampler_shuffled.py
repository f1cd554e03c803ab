"""Warn when Lightning shuffles the order of a custom sampler."""

from _expect import patched, same, warns, whole_run


def suggests_no_opt_in(name):
    return lambda seen: (
        len(seen["warnings"]) == 1
        and seen["warnings"][0].startswith(f"The samples that {name} chooses are shuffled")
        and "sampler-order-kept" not in seen["warnings"][0]
        and "use_distributed_sampler=False" in seen["warnings"][0]
    )


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
    patched(
        "sequential",
        "warning suggests no useless opt-in",
        suggests_no_opt_in("FromTheEnd"),
        program="sampler_order_kept",
    ),
    patched(
        "batches", "warning suggests no useless opt-in", suggests_no_opt_in("Backwards"), program="sampler_order_kept"
    ),
]
