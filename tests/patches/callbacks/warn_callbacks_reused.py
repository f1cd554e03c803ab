"""EarlyStopping and ModelCheckpoint objects in a second Trainer begin with the state of the first run. Cases:
``reused``, ``new`` (new callbacks), ``same-trainer`` (fit is called twice), ``resumed`` (from a checkpoint), ``reset``
(the program resets the callbacks), ``averaged`` (StochasticWeightAveraging)."""

from _expect import patched, same, warns


def warns_twice(seen):
    first, second = sorted(seen["warnings"])
    return (
        seen["epochs"] < 6
        and first.startswith("This EarlyStopping was in another Trainer")
        and second.startswith("This ModelCheckpoint was in another Trainer")
    )


EXPECT = [
    same(["new", "same-trainer", "resumed", "reset"], "warning is absent for fresh callbacks"),
    patched("reused", "each reused callback causes one warning", warns_twice, on=("2.0.0", "2.6.6")),
    warns("averaged", "reused average causes a warning", "This StochasticWeightAveraging was in another Trainer"),
    same("reused", "reused callbacks train as on stock", compare="epochs", on=("2.0.0", "2.6.6")),
]

import _scenario as scenario
import torch

kinds = scenario.pytorch("callbacks")
CASE = scenario.CASE
OUT = "checkpoints"


class Model(scenario.BoringModel):
    def __init__(self, values):
        super().__init__()
        self.values = values

    def validation_step(self, batch, batch_idx):
        self.log("metric", torch.tensor(float(self.values[min(self.current_epoch, 5)])))


def callbacks():
    if CASE == "averaged":
        return [kinds.StochasticWeightAveraging(0.1, swa_epoch_start=1)]
    return [kinds.EarlyStopping("metric", patience=2), kinds.ModelCheckpoint(OUT, "{metric}", monitor="metric")]


def trainer(used):
    return scenario.trainer(
        max_epochs=6, limit_train_batches=1, limit_val_batches=1, num_sanity_val_steps=0, callbacks=used
    )


if __name__ == "__main__":
    used = callbacks()
    first = trainer(used)
    first.fit(Model([3, 1, 2, 2, 2, 2]))
    path = used[1].best_model_path if CASE == "resumed" else None
    if CASE == "reset":
        used[0].wait_count = used[0].stopped_epoch = 0
        used[0].best_score = torch.tensor(torch.inf)
        used[1].best_model_path, used[1].best_k_models = "", {}
    second = first if CASE == "same-trainer" else trainer(callbacks() if CASE == "new" else used)
    with scenario.observing_warnings():
        second.fit(Model([9, 8, 7, 6, 5, 4]), ckpt_path=path)
    scenario.observe(epochs=second.current_epoch)
