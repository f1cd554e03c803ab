"""A run with ModelPruning is resumed. Cases: a configuration and a stop of `tests.differential.resuming`; ``validate``
and ``test`` with a checkpoint that is not permanent; ``saved`` (what a checkpoint holds); ``own`` (the program prunes
the module before it is loaded); ``other`` (the resumed run does not prune)."""

import json

from _expect import bug, fixed, same


def is_right(seen):
    """True if this is the sum of the weights after the first batch of the resumed run."""
    events = map(json.loads, seen["events"])
    return next((event[5] for event in events if event[0] == "batch ends"), None) == 5.391503


EXPECT = [
    bug(
        ["ModelPruning: epoch end", "ModelPruning, not permanent: epoch end"],
        patched=is_right,
        like="{}, whole",
    ),
    same(["own", "other", "saved"], "other program is unchanged", on=("2.0.0", "2.6.6")),
    same("ModelPruning: within, whole", "uninterrupted run is unchanged", on=("2.0.0", "2.6.6")),
    fixed(
        ["validate", "test"],
        "evaluation loads masked weights",
        stock="weight_mask",
        patched={"is_same": True},
        on=("2.0.0", "2.6.6"),
    ),
    fixed(
        ["ModelPruning by layer, Adam: validation", "ModelPruning, not permanent: last batch"],
        "resumed run equals the uninterrupted run",
        like="{}, whole",
        toggle="default,exact-resume",
    ),
]

import os

import _scenario as scenario
import torch

CASE = scenario.CASE


def pruning_and_saving(permanent, directory):
    callbacks = scenario.pytorch("callbacks")
    pruning = callbacks.ModelPruning(
        "l1_unstructured",
        amount=0.25,
        make_pruning_permanent=permanent,
        use_lottery_ticket_hypothesis=False,
        parameter_names=["weight"],
    )
    return [pruning, callbacks.ModelCheckpoint(directory, "saved")]


def model():
    torch.manual_seed(1)
    return type("Model", (scenario.BoringModel,), hooks())()


def hooks():
    def on_load_checkpoint(self, checkpoint):
        torch.nn.utils.prune.identity(self.layer, "weight")

    return {"on_load_checkpoint": on_load_checkpoint} if CASE == "own" else {}


def trainer(epochs, callbacks):
    options = {"limit_train_batches": 2, "limit_val_batches": 1, "enable_checkpointing": True}
    return scenario.trainer(accelerator="cpu", max_epochs=epochs, callbacks=callbacks, **options)


if __name__ == "__main__":
    if ":" in CASE:
        from tests.differential import resuming

        scenario.observe(**resuming.after_stop(CASE))
    else:
        directory = os.getcwd()
        callbacks = pruning_and_saving(CASE in ("saved", "other"), directory)
        first = model()
        trainer(1, callbacks).fit(first)
        path = callbacks[1].best_model_path
        second = model()
        again = trainer(2, [] if CASE == "other" else pruning_and_saving(CASE == "saved", directory))
        if CASE == "saved":
            keys = sorted(torch.load(path, weights_only=False))
            scenario.observe(weight=first.layer.weight, keys=[key for key in keys if key != "pruning_masks"])
        elif CASE in ("validate", "test"):
            getattr(again, CASE)(second, ckpt_path=path)
            scenario.observe(
                is_same=torch.equal(second.layer.weight, first.layer.weight_orig * first.layer.weight_mask)
            )
        else:
            again.fit(second, ckpt_path=path)
            scenario.observe(weight=second.layer.weight, zeros=int((second.layer.weight == 0).sum()))
