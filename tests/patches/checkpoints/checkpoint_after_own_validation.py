"""A checkpoint within an epoch is ranked by the previous validation instead of the one at its step. Cases: ``within``
(saved and validated every two steps), ``subclass`` (saves when a validation ends), ``apart`` (saved every five steps),
``no-monitor``, ``epochs`` (saved at the end of epochs)."""

from _expect import bug, same

EXPECT = [
    bug(
        "within",
        stock=lambda seen: seen["best"] != "step=4.ckpt",
        patched={"best": "step=4.ckpt"},
        like="subclass",
        since="2.5.5",
        compare="best",
    ),
    same(["subclass", "apart", "no-monitor", "epochs"], "other checkpoints are unchanged", alone=True),
]

import os

import _scenario as scenario
import torch

Saving = scenario.pl.callbacks.ModelCheckpoint
CASE = scenario.CASE
OUT = "checkpoints"
VALUES = {2: 5.0, 4: 1.0, 6: 4.0, 8: 3.0}


class AtEnd(Saving):
    def on_train_batch_end(self, *args):
        pass

    def on_validation_end(self, trainer, pl_module):
        if not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            self._save_topk_checkpoint(trainer, candidates)
            self._save_last_checkpoint(trainer, candidates)


class Model(scenario.BoringModel):
    def validation_step(self, batch, batch_idx):
        self.log("metric", torch.tensor(VALUES[self.global_step]))


if __name__ == "__main__":
    monitor = None if CASE == "no-monitor" else "metric"
    options = {"every_n_epochs": 1} if CASE == "epochs" else {"every_n_train_steps": 5 if CASE == "apart" else 2}
    kind = AtEnd if CASE == "subclass" else Saving
    saving = kind(OUT, "{step}", monitor=monitor, save_top_k=1, **options)
    trainer = scenario.trainer(
        max_epochs=1,
        limit_train_batches=8,
        limit_val_batches=1,
        val_check_interval=2,
        num_sanity_val_steps=0,
        callbacks=saving,
    )
    with scenario.observing_warnings():
        trainer.fit(Model())
    scenario.observe(files=sorted(os.listdir(OUT)), best=os.path.basename(saving.best_model_path))
