"""Warn when Lightning replaces what a DataLoader draws from."""

from _expect import same, warns


def lost(case, what, warning):
    return warns(case, what, warning, program="loader_sampler_kept", on="2.6.6")


EXPECT = [
    warns("subset", "lost subset", "its subset is ignored", program="loader_sampler_kept", on=("2.0.0", "2.6.6")),
    lost("predict", "predict of other items", "instead of Chosen"),
    lost("overfit", "overfit of other items", "its subset is ignored"),
    lost("unseeded", "ranks that draw different orders", "because there is no seed"),
    same(["shuffled", "predict, direct"], "warning is absent if nothing is lost", program="loader_sampler_kept"),
]
