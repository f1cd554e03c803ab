"""AdvancedProfiler(dump_stats=True) ends in an error if a callback monitors a metric with a slash. Cases: "", ``plain``
(no slash), ``nowhere`` (the profiler's directory is a file)."""

from _expect import bug, same

EXPECT = [
    # Not compared: The files' names without what is no letter and no digit: the official fix renames all files.
    bug(stock="[Callback]EarlyStopping{'monitor': 'val/loss'", compare="words", since="2.4.0"),
    same("plain", "other names are unchanged", compare="files"),
    same(
        "nowhere",
        "other errors are unchanged",
        "FileExistsError",
        compare=lambda ranks: [sorted(rank) for rank in ranks],
    ),
]

import os
import re

import _scenario as scenario

METRIC = "val_loss" if scenario.CASE == "plain" else "val/loss"


class Model(scenario.BoringModel):
    def validation_step(self, batch, batch_idx):
        self.log(METRIC, 1.0)


if __name__ == "__main__":
    directory = "profiles"
    if scenario.CASE == "nowhere":
        open(directory, "w").close()
    profiler = scenario.pytorch("profilers").AdvancedProfiler(directory, dump_stats=True)
    stopping = scenario.pl.callbacks.EarlyStopping(METRIC)
    options = {"accelerator": "cpu", "limit_train_batches": 1, "limit_val_batches": 1, "max_epochs": 1}
    with scenario.observing_errors():
        scenario.trainer(profiler=profiler, callbacks=stopping, **options).fit(Model())
    files = sorted(os.listdir(directory))
    scenario.observe(files=files, words=sorted(re.sub(r"[\W_]+", " ", name) for name in files))
