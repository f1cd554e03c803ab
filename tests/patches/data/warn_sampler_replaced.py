"""Warn when Lightning replaces what a DataLoader draws from."""

from _expect import same, warns


def lost(case, what, warning, on="2.6.6"):
    return warns(case, what, warning, program="loader_sampler_kept", on=on)


EXPECT = [
    lost("subset", "lost subset", "its subset is ignored", on=("2.0.0", "2.6.6")),
    lost("own", "lost order of a custom sampler", "that Chosen chooses are shuffled", on=("2.0.0", "2.6.6")),
    lost("predict", "predict of other items", "instead of Chosen"),
    lost("overfit", "overfit of other items", "its subset is ignored"),
    lost("unseeded", "ranks that draw different orders", "the ranks have no common seed"),
    lost("pairs", "loaders with the same permutation", "Several training loaders have the same permutation"),
    same(["shuffled", "predict, direct"], "warning is absent if nothing is lost", program="loader_sampler_kept"),
]
