"""A Trainer runs within another one's run, with the same AdvancedProfiler. Case: ``none`` for a profiler each."""

from _expect import bug

EXPECT = [bug(stock="which was never started", patched={"steps": [2, 1]}, like="none")]

import _scenario as scenario

AdvancedProfiler = scenario.pytorch("profilers").AdvancedProfiler


def trainer(profiler):
    folder = scenario.QUIET["default_root_dir"]
    profiler = AdvancedProfiler(folder, "profile") if scenario.CASE == "none" else profiler
    return scenario.trainer(max_epochs=1, limit_train_batches=1, limit_val_batches=0, profiler=profiler)


class Model(scenario.BoringModel):
    def on_train_epoch_end(self):
        inner.fit(scenario.BoringModel())


if __name__ == "__main__":
    profiler = AdvancedProfiler(scenario.QUIET["default_root_dir"], "profile")
    outer, inner = trainer(profiler), trainer(profiler)
    outer.fit(Model())
    scenario.observe(steps=[outer.global_step + inner.global_step, inner.global_step])
