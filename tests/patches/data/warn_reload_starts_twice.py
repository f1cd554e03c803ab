"""Warn when reload_dataloaders_every_n_epochs starts a stream, or worker processes, twice."""

from _expect import patched, same, whole_run


def prints(times):
    return whole_run(
        lambda result: result.ok and result.output.count("starts each reloaded data loader twice") == times
    )


EXPECT = [
    same("", "stream is started as on stock", program="reload_starts_once", on=("2.1.0", "2.6.6")),
    patched(
        "",
        "stream that is started twice is warned of once",
        prints(1),
        program="reload_starts_once",
        on=("2.1.0", "2.6.6"),
    ),
    patched("kept", "stream that is started once gives no warning", prints(0), program="reload_starts_once"),
    patched(
        "",
        "warning is absent if the opt-in patch is selected",
        prints(0),
        program="reload_starts_once",
        toggle="default,reload-starts-once",
    ),
]
