"""A LightningModule cannot be copied or pickled while its DataLoader is iterated. Cases: ``deepcopy`` and ``pickle`` of
the module, ``trainer`` (pickled), ``workers`` (deepcopy, with a DataLoader that has them); and objects that stock can
pickle: ``loader`` (a CombinedLoader of lists, in the middle), ``after`` (the module, when the training is over)."""

from _expect import bug, same

EXPECT = [
    bug(
        ["deepcopy", "pickle", "trainer", "workers"],
        stock=lambda seen: "cannot be pickled" in (seen["error"] or ""),
        patched=lambda seen: seen["equal"] and seen["steps"] == 4,
    ),
    same(["loader", "after"], "picklable module is unchanged"),
]

import copy
import pickle

import _scenario as scenario
import torch

boring = scenario.pytorch("demos.boring_classes")


class Copying(scenario.pl.Callback):
    copied = None

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if scenario.CASE in COPIES and batch_idx == 1:
            made = COPIES[scenario.CASE](trainer if scenario.CASE == "trainer" else module)
            self.copied = (made.lightning_module if scenario.CASE == "trainer" else made).layer.weight.clone()
            self.original = module.layer.weight.clone()


def pickled(value):
    return pickle.loads(pickle.dumps(value))


COPIES = {"deepcopy": copy.deepcopy, "workers": copy.deepcopy, "pickle": pickled, "trainer": pickled}


def in_the_middle():
    loader = scenario.pytorch("utilities.combined_loader").CombinedLoader([[1, 2, 3], [4, 5, 6]], "max_size")
    iterator = iter(loader)
    first = next(iterator)
    return [first, next(pickled(loader)), next(iterator)]


if __name__ == "__main__":
    if scenario.CASE == "loader":
        scenario.observe(batches=in_the_middle())
    else:
        data = torch.utils.data.DataLoader(
            boring.RandomDataset(32, 8), num_workers=1 if scenario.CASE == "workers" else 0
        )
        callback = Copying()
        trainer = scenario.trainer(max_steps=4, limit_val_batches=0, callbacks=callback)
        model = boring.BoringModel()
        error = None
        try:
            trainer.fit(model, data)
        except NotImplementedError as raised:
            error = str(raised)
        if scenario.CASE == "after":
            callback.copied, callback.original = pickled(model).layer.weight, model.layer.weight
        equal = callback.copied is not None and bool((callback.copied == callback.original).all())
        scenario.observe(error=error, steps=trainer.global_step, equal=equal)
