"""The number of steps of a run that is resumed from a checkpoint. Two epochs of four batches. Cases: the position of
the checkpoint, ``batch`` (the second of an epoch), ``last_batch``, ``validation`` (after the second batch) or
``epoch``; ``whole`` is the uninterrupted run."""

import _scenario as scenario
import torch
from _model import Linear
from torch.utils.data import DataLoader

CASE = scenario.CASE


class Model(Linear):
    features, bias, weight, lr = 1, False, 0.0, 1.0

    def validation_step(self, batch, batch_idx):
        pass


def fit(callbacks, resume=None):
    trainer = scenario.trainer(
        callbacks=callbacks,
        max_epochs=2,
        val_check_interval=2 if CASE == "validation" else 4,
    )
    trainer.fit(Model(), DataLoader(torch.ones(4, 1)), DataLoader(torch.ones(1, 1)), ckpt_path=resume)
    return trainer


if __name__ == "__main__":
    options = {"every_n_train_steps": 2} if "batch" in CASE else {}
    callback = scenario.pl.callbacks.ModelCheckpoint("saved", "{step}", save_top_k=-1, **options)
    trainer = fit([callback])
    if CASE != "whole":
        step = 2 if CASE in ("batch", "validation") else 4
        with scenario.observing_warnings():
            trainer = fit([], resume=f"saved/step={step}.ckpt")
    scenario.observe(steps=trainer.global_step, weight=trainer.model.layer.weight)
