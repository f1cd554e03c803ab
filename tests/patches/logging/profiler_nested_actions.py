"""AdvancedProfiler with nested actions, on a Python that allows one profiler at a time. Below 3.12, the scenario makes
cProfile refuse a second profiler, as later Pythons do (a test compares)."""

from _expect import bug

ERROR = "ValueError: Another profiling tool is already active"

EXPECT = [bug(stock=ERROR, patched=lambda seen: seen == {"steps": 3, "measured": [True, False]})]

import cProfile
import sys

if sys.version_info < (3, 12):

    class OneAtATime(cProfile.Profile):
        active = None

        def enable(self, *args, **kwargs):
            if OneAtATime.active is not None:
                raise ValueError("Another profiling tool is already active")
            super().enable(*args, **kwargs)
            OneAtATime.active = self

        def disable(self):
            super().disable()
            if OneAtATime.active is self:
                OneAtATime.active = None

    cProfile.Profile = OneAtATime

import _scenario as scenario


class Measured(scenario.boring_model()):
    def training_step(self, batch, batch_idx):
        with self.trainer.profiler.profile("within"):
            return super().training_step(batch, batch_idx)

    def on_train_end(self):
        reports = self.trainer.profiler.summary().split("Profile stats for: ")
        measured = {text.split()[0]: "(training_step)" in text for text in reports[1:]}
        scenario.observe(measured=[measured[name] for name in ("within", "run_training_batch")])


if __name__ == "__main__":
    trainer = scenario.trainer(profiler="advanced", max_steps=3, limit_val_batches=0)
    trainer.fit(Measured())
    scenario.observe(steps=trainer.global_step)
