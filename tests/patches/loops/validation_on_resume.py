"""Issues 19549, 20277 and 20288: a run is resumed from a checkpoint that was saved at the end of a validation.

8 batches in each of 2 epochs, 3 to validate on. Cases: "" (saved in a validation within the epoch), ``end`` (in the one
at the end of the epoch, after which max_steps leaves more to do), ``best`` (by a ModelCheckpoint that keeps the best),
``accumulate`` (a step every 2 batches), ``streams`` (data without a length), ``loaders`` (two to validate on),
``steps`` (validation every 5 batches, across epochs), ``start`` (saved when a validation begins: it is to run),
``early`` (saved after 3 batches, before the first validation), ``other`` (resumed with validation every 2 batches),
``epoch`` (saved by default, at the end of an epoch), ``stopping`` (as ``end``, with EarlyStopping, which checks at the
end of the epoch), ``plateau`` (with ReduceLROnPlateau after each validation), ``marks`` (the module turns the first
validation after a resume into a sanity check), ``marks later`` (it does so in another hook).
"""

from _expect import bug, same, same_calls


def shows_bug(observed):
    return observed["resumed"]["seen"][:2] == ["validation", "validate 0"]


def is_right(observed):
    """True if the resumed run equals the end of the uninterrupted run, with bit-identical weights."""
    whole, resumed = observed["whole"], observed["resumed"]
    return resumed["seen"] == whole["seen"][-len(resumed["seen"]) :] and resumed["weights"] == whole["weights"]


EXPECT = [
    bug(
        ("", "end", "accumulate", "streams", "loaders", "steps"),
        stock=shows_bug,
        patched=is_right,
        compare=("whole", "resumed"),
    ),
    bug(
        "best",
        stock=lambda observed: observed["resumed"]["best"] == [(4.0).hex()],
        patched=lambda observed: observed["resumed"]["best"] == [(9.0).hex()],
        compare=("whole", "resumed"),
    ),
    bug("other", stock=shows_bug, compare=("whole", "resumed")),
    same(
        ["start", "early", "epoch"],
        "unfinished validation is run as on stock",
        compare="resumed",
        alone=True,
        on=("2.0.0", "2.4.0"),
    ),
    same_calls("own_check", "custom check on the loop is kept", on="2.2.5"),
]

import os

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

CASE = scenario.CASE


class Stream(IterableDataset):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter(torch.ones(self.size, 2))


class Model(scenario.pl.LightningModule):
    def __init__(self, seen):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        torch.nn.init.ones_(self.layer.weight)
        self.seen = seen

    def note(self, what):
        if not self.trainer.sanity_checking:
            self.seen.append(what)

    def training_step(self, batch, batch_idx):
        self.note(f"train {batch_idx}")
        return self.layer(batch if isinstance(batch, torch.Tensor) else batch[0]).sum()

    def on_validation_start(self):
        self.note("validation")

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        self.note(f"validate {batch_idx}")
        # Small in the first batch and large in the last.
        self.log("loss", float(batch_idx) + self.trainer.global_step)

    def on_validation_end(self):
        losses = {float(value) for name, value in self.trainer.callback_metrics.items() if name.startswith("loss")}
        self.note("loss " + " ".join(f"{loss:g}" for loss in sorted(losses)))

    def on_train_epoch_end(self):
        self.note("epoch")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.01)
        if CASE != "plateau":
            return optimizer
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        return [optimizer], [{"scheduler": plateau, "monitor": "loss", "interval": "step", "frequency": 4}]


class Marks(Model):
    marked = False

    def mark(self):
        if self.trainer.ckpt_path is not None and not self.marked:
            self.trainer.sanity_checking = self.marked = True

    def on_validation_model_zero_grad(self):
        super().on_validation_model_zero_grad()
        if CASE == "marks":
            self.mark()

    def on_validation_epoch_start(self):
        if CASE == "marks later":
            self.mark()


class Save(scenario.pl.Callback):
    def save(self, trainer, when):
        steps = {"end": 8, "stopping": 8, "epoch": 8, "early": 3, "accumulate": 2, "steps": 5}.get(CASE, 4)
        if when and not trainer.sanity_checking and trainer.global_step == steps and not os.path.exists(SAVED):
            trainer.save_checkpoint(SAVED)

    def on_validation_end(self, trainer, *_):
        self.save(trainer, CASE not in ("start", "early", "epoch"))

    def on_validation_start(self, trainer, *_):
        self.save(trainer, CASE == "start")

    def on_train_batch_end(self, trainer, *_):
        self.save(trainer, CASE == "early")

    def on_train_epoch_end(self, trainer, *_):
        self.save(trainer, CASE == "epoch")


def data(size):
    if CASE == "streams":
        return DataLoader(Stream(size), batch_size=None)
    return DataLoader(TensorDataset(torch.ones(size, 2)))


def fit(resume, **options):
    seen, directory = [], os.path.join(OUT, "resumed" if resume else "first")
    if CASE == "best":
        options["callbacks"].append(scenario.pl.callbacks.ModelCheckpoint(directory, monitor="loss"))
    if CASE == "stopping":
        options["callbacks"].append(scenario.pl.callbacks.EarlyStopping("loss", patience=9))
    options["limit_train_batches"] = 8
    ends = CASE in ("end", "stopping")
    if not ends:
        options.setdefault("val_check_interval", 4)
    if CASE == "steps":
        options.update(val_check_interval=5, check_val_every_n_epoch=None)
    trainer = scenario.trainer(
        max_epochs=-1 if ends else 2,
        max_steps=16 if ends else -1,
        accumulate_grad_batches=2 if CASE == "accumulate" else 1,
        enable_checkpointing=CASE == "best",
        **options,
    )
    validation = [data(3), data(3)] if CASE == "loaders" else data(3)
    model = Marks(seen) if CASE.startswith("marks") else Model(seen)
    trainer.fit(model, data(8), validation, ckpt_path=SAVED if resume else None)
    best = trainer.checkpoint_callback.best_model_score if CASE == "best" else None
    return {"seen": seen, "best": best, "steps": trainer.global_step, "weights": trainer.lightning_module.layer.weight}


if __name__ == "__main__":
    OUT = os.getcwd()
    SAVED = os.path.join(OUT, "saved.ckpt")
    whole = fit(False, callbacks=[Save()])
    with scenario.observing_warnings():
        resumed = fit(True, callbacks=[], **({"val_check_interval": 2} if CASE == "other" else {}))
    scenario.observe(whole=whole, resumed=resumed)
