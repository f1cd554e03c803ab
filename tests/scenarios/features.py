"""What no release does, and how the same is had without replacing anything.

Cases: ``validation``, ``drift`` (the batches of an epoch are no multiple of those that are accumulated), ``dict``
and ``size`` (of a batch, for the mean over an epoch); with ``-refused`` behind the last two, what people try first.
"""

import warnings

import _scenario as scenario
import torch

pl = scenario.pytorch()
CASE, _, REFUSED = scenario.CASE.partition("-")
SEEN = []
WALKS = []
result = scenario.pytorch("trainer.connectors.logger_connector.result")
extract_batch_size = result.extract_batch_size
result.extract_batch_size = lambda batch: WALKS.append(batch) or extract_batch_size(batch)


class Model(scenario.pytorch("demos.boring_classes").BoringModel):
    def training_step(self, batch, batch_idx):
        metrics = {"a": 1.0, "b": 2.0}
        if CASE == "dict" and REFUSED:
            self.log("train", metrics)
        elif CASE == "dict":
            self.log_dict({f"train/{key}": value for key, value in metrics.items()})
        return super().training_step(batch, batch_idx)

    def on_train_epoch_end(self):
        if CASE == "size":
            SEEN.append(len(WALKS))

    def on_validation_start(self):
        SEEN.append(self.trainer.global_step)


class Sized(Model):
    def training_step(self, batch, batch_idx):
        sizes = {} if REFUSED else {"batch_size": len(batch["items"])}
        self.log("mean", batch["items"].sum(), on_step=False, on_epoch=True, **sizes)
        return self.layer(batch["items"]).sum()

    def train_dataloader(self):
        batches = [{"other": torch.ones(size + 2), "items": torch.ones(size, 32)} for size in (1, 3)]
        return torch.utils.data.DataLoader(batches, batch_size=None)


if __name__ == "__main__":
    if CASE in ("validation", "drift"):
        accumulated, steps = 4, 2
        trainer = scenario.trainer(
            accelerator="cpu",
            accumulate_grad_batches=accumulated,
            val_check_interval=steps * accumulated,
            check_val_every_n_epoch=None,
            limit_train_batches=10 if CASE == "drift" else 8,
            limit_val_batches=1,
            num_sanity_val_steps=0,
            max_steps=8,
        )
        trainer.fit(Model())
    else:
        trainer = scenario.trainer(accelerator="cpu", limit_train_batches=2, limit_val_batches=0, max_epochs=1)
        warnings.simplefilter("always")
        trainer.fit((Sized if CASE == "size" else Model)())
    logged = {name: value.item() for name, value in trainer.logged_metrics.items()}
    scenario.observe(seen=SEEN, logged=logged)
