"""Warn when self.clip_gradients clips gradients that are still scaled."""

from _expect import patched, same, warns

EXPECT = [
    same(
        ["two-by-hand", "norm-by-hand", "automatic"],
        "warning is absent if gradients are unscaled",
        compare="warnings",
        program="clipping_of_scaled_gradients",
    ),
    warns(
        "two",
        "scaled gradients cause a warning and are unchanged",
        "clips to 0.01 are still scaled by 1024, so",
        program="clipping_of_scaled_gradients",
        on=("2.0.0", "2.6.6"),
    ),
    patched(
        "two",
        "warning is absent if the opt-in patch is selected",
        {"warnings": []},
        toggle="default,clipping-of-scaled-gradients",
        program="clipping_of_scaled_gradients",
    ),
]
