"""An IterableDataset yields 5 batches, but its __len__ returns 6; two epochs. Cases: "" (validation at the end of each
epoch), ``half`` (and after every third batch), ``fifth`` (after every batch), ``plateau`` (a scheduler that watches the
validation), ``skip`` (``on_train_batch_start`` ends each epoch after two batches), ``every-2`` (accumulation over two
batches), ``uneven`` (validation after every fourth batch, which is not the end of an epoch). With ``-right`` behind it,
__len__ is right."""

from _expect import bug, fixed, patched, same


def _twice_in_each_epoch(seen):
    """True if both epochs are validated in the middle and at the end."""
    last = max(i for i, what in enumerate(seen["seen"][:12]) if what == "validate")
    return seen["seen"].count("validate") == 4 and seen["seen"].index("epoch") - 1 == last


EXPECT = [
    bug(
        ["", "plateau"],
        stock=lambda seen: "validate" not in seen["seen"] and seen["lr"] == (0.1).hex(),
        patched=lambda seen: seen["seen"].count("validate") == 2,
        like="{}-right",
    ),
    # Validation has just run, is not due at the end of an epoch, or the program ended the epoch.
    same(["fifth", "uneven", "skip"], "validation that is not due is not run", compare="seen"),
    fixed(
        "half",
        "validation within the epoch and at its end",
        stock=lambda seen: seen["seen"].count("validate") == 2,
        patched=_twice_in_each_epoch,
        on=("2.2.5", "2.6.6"),
    ),
    patched(
        "every-2",
        "accumulated gradients are kept",
        lambda seen: seen["seen"].count("validate") == 2 and "zero_grad" not in seen["seen"],
    ),
    same(
        "every-2",
        "only the validations are new",
        compare=lambda ranks: [what for what in ranks[0]["seen"] if what != "validate"],
    ),
]

import os

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, IterableDataset

CASE, RIGHT = scenario.CASE.partition("-right")[0], scenario.CASE.endswith("-right")


class Stream(IterableDataset):
    def __len__(self):
        return 5 if RIGHT else 6

    def __iter__(self):
        return iter(torch.ones(5, 2))


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        torch.nn.init.ones_(self.layer.weight)
        self.seen = []

    def on_train_batch_start(self, batch, batch_idx):
        return -1 if CASE == "skip" and batch_idx == 2 else None

    def training_step(self, batch, batch_idx):
        self.seen.append(f"train {batch_idx}")
        return self.layer(batch).mean()

    def on_validation_model_zero_grad(self):
        self.seen.append("zero_grad")
        super().on_validation_model_zero_grad()

    def validation_step(self, batch, batch_idx):
        self.seen.append("validate")
        self.log("loss", self.layer(batch).mean())

    def on_train_epoch_end(self):
        self.seen.append("epoch")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        if CASE == "plateau":
            scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=0, factor=0.5)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "loss"}}
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]


class Log(scenario.pytorch("loggers.logger").Logger):
    name, version, experiment = "log", 0, None  # 2.0.5 to 2.0.7 read each logger's experiment

    def __init__(self):
        super().__init__()
        self.logged = []

    def log_hyperparams(self, *args, **kwargs):
        pass

    def log_metrics(self, metrics, step=None, **_):
        self.logged += [[name, step] for name in sorted(metrics)]


if __name__ == "__main__":
    torch.manual_seed(1)
    log, model = Log(), Model()
    directory = "checkpoints"
    checkpoint = scenario.pl.callbacks.ModelCheckpoint(directory, filename="{epoch}-{step}", save_top_k=-1)
    options = {
        "half": {"val_check_interval": 2 if RIGHT else 3},
        "fifth": {"val_check_interval": 1},
        "uneven": {"val_check_interval": 4},
        "every-2": {"accumulate_grad_batches": 2},
    }
    trainer = scenario.trainer(
        max_epochs=2, num_sanity_val_steps=0, logger=log, callbacks=checkpoint, **options.get(CASE, {})
    )
    trainer.fit(model, DataLoader(Stream(), batch_size=None), DataLoader(torch.ones(1, 2), batch_size=None))
    scenario.observe(
        seen=model.seen,
        logged=log.logged,
        lr=trainer.optimizers[0].param_groups[0]["lr"],
        weights=model.layer.weight,
        saved=sorted(os.listdir(directory)),
    )
