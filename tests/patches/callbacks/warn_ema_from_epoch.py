"""Warn when EMAWeightAveraging averages before update_starting_at_epoch."""

from _expect import patched, same, warns

EXPECT = [
    warns(
        "epoch",
        "early average causes one warning",
        "EMAWeightAveraging(update_starting_at_epoch=2) averages from the first step on",
        program="ema_from_epoch",
        on=("2.6.0", "2.6.6"),
    ),
    same(["subclass", "step", "both", "plain"], "warning is absent for other averages", program="ema_from_epoch"),
    same("without", "run without an average is unchanged", program="ema_from_epoch"),
    patched(
        "never",
        "warning is absent if the opt-in patch is selected",
        {"warnings": []},
        program="ema_from_epoch",
        toggle="all",
    ),
]
