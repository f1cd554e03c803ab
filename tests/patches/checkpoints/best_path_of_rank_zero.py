"""Two CPU ranks test the best checkpoint, whose name contains a metric. Cases: ``own`` (each rank has its value),
``own, implied`` (test is called without a model), ``synced`` (all ranks have the same value)."""

from _expect import bug, fixed

RANK_ZERO = {"loaded": [0.0, 0.0]}

EXPECT = [
    bug("own", stock="FileNotFoundError", patched=RANK_ZERO, like="synced"),
    fixed("own, implied", "best checkpoint without its name", patched=RANK_ZERO, on=("1.9.5", "2.6.6")),
]

import _scenario as scenario
import torch


class Model(scenario.boring_model()):
    def validation_step(self, batch, batch_idx):
        self.log("metric", float(self.global_rank), sync_dist=scenario.CASE == "synced")

    def test_step(self, batch, batch_idx):
        pass

    def on_test_start(self):
        path = self.trainer.ckpt_path
        loaded = float("metric=1" in str(path)) * (scenario.CASE != "synced")
        self.loaded = self.all_gather(torch.tensor(loaded)).tolist()


if __name__ == "__main__":
    model = Model()
    folder = scenario.QUIET["default_root_dir"]
    saves = scenario.pl.callbacks.ModelCheckpoint(folder, "{metric:.1f}", monitor="metric")
    trainer = scenario.trainer(devices=2, strategy="ddp", max_epochs=1, limit_train_batches=1, callbacks=[saves])
    trainer.fit(model)
    if scenario.CASE == "own, implied":
        trainer.test(verbose=False)
    else:
        trainer.test(model, ckpt_path="best", verbose=False)
    scenario.observe(loaded=model.loaded)
