"""AdvancedProfiler(dump_stats=True) ends in an error if a callback monitors a metric with a slash. Cases: "", ``plain``
(no slash), ``nowhere`` (the profiler's directory is a file)."""

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
