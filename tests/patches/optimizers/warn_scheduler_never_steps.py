"""Warn when a scheduler never steps, because its frequency exceeds the batches of an epoch."""

from _expect import patched, same, whole_run


def prints(times):
    warning = "with interval='step' and frequency=3 never steps"
    return whole_run(lambda result: result.ok and result.output.count(warning) == times)


EXPECT = [
    same("", "rates are those of stock", program="scheduler_frequency_in_steps", on=("2.0.0", "2.6.6")),
    patched(
        "",
        "scheduler that never steps is warned of once",
        prints(1),
        program="scheduler_frequency_in_steps",
        on=("2.0.0", "2.6.6"),
    ),
    patched(
        ["divides", "recommended"],
        "scheduler that steps gives no warning",
        prints(0),
        program="scheduler_frequency_in_steps",
    ),
    patched(
        "",
        "warning is absent if the opt-in patch is selected",
        prints(0),
        program="scheduler_frequency_in_steps",
        toggle="default,scheduler-frequency-in-steps",
    ),
]
