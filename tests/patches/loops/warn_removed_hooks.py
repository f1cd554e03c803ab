"""A model for Lightning 1.x, whose ``on_epoch_end`` resets a state, is trained on 2.x. The state is a running sum,
which each epoch is to begin anew. Cases: ``1.x``, and ``2.x``, with the hook that is called now; ``callback``, where a
callback has the hook; ``others`` and ``named``, hooks that nothing is lost with."""

from _expect import patched, same, warns, whole_run

ENDS = ("2.0.0", "2.6.6")
# Two epochs of two steps, with gradients of 1 and 2 in each.
right = {"weight": -6.0}
wrong = {"weight": -10.0}

EXPECT = [
    warns(
        ["", "metaclass"],
        "uncalled hook of the model causes one warning",
        "never calls Old.on_epoch_end (instead: on_train_epoch_end",
        stock=wrong,
        on=ENDS,
    ),
    warns(
        "callback",
        "uncalled hook of a callback causes one warning",
        "never calls Forgets.on_epoch_end (instead: on_train_epoch_end",
        stock=wrong,
        on=ENDS,
    ),
    # Programs with the replacement, a stub in a base class, or a hook that another method or the script calls.
    same(["2.x", "others", "named"], "warning is absent if all hooks are called", right, on=ENDS),
    patched(
        "error",
        "program continues if warnings are errors",
        whole_run(
            lambda result: (
                result.ok
                and result.observations[0]["weight"] == (-10.0).hex()
                and "lightning_patches: Lightning 2.x never calls Old.on_epoch_end" in result.output
            )
        ),
        on="2.0.9",  # pytorch_lightning, whose warnings the program does not exempt
    ),
]

import warnings

import _scenario as scenario
import torch
from _model import Linear

CASE = scenario.CASE


class Model(Linear):
    features, bias, weight, lr = 1, False, 0.0, 1.0

    def __init__(self):
        super().__init__()
        self.total = 0.0

    def training_step(self, batch, batch_idx):
        self.total += 1.0
        return (self.layer(batch) * self.total).sum()

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(2, 1))

    def forget(self):
        self.total = 0.0


class Old(Model):
    def on_epoch_end(self):
        self.forget()


class New(Model):
    def on_train_epoch_end(self):
        self.forget()


class Named(New):
    on_epoch_start = property(lambda self: ["total", self.total])

    def on_post_move_to_device(self):
        self.forget()

    def on_fit_start(self):
        getattr(self, "on_{}_to_device".format("post_move"))()


class Forgets(scenario.pl.Callback):
    def on_epoch_end(self, trainer, pl_module):
        pl_module.forget()


class Raises(type(scenario.pl.LightningModule)):
    def __getattr__(cls, name):
        raise RuntimeError(name)


if CASE == "metaclass":

    class Old(Model, metaclass=Raises):
        def on_epoch_end(self):
            self.forget()


if __name__ == "__main__":
    model = {"": Old, "error": Old, "metaclass": Old, "2.x": New, "callback": Model, "others": Model, "named": Named}[
        CASE
    ]()
    if CASE == "others":
        import _removed_hooks_in_use as in_use

        model = in_use.made_of(Model)
    trainer = scenario.trainer(max_epochs=2, callbacks=[Forgets()] if CASE == "callback" else None, max_steps=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error" if CASE == "error" else "always", UserWarning)
        warnings.filterwarnings("always", module="lightning")
        trainer.fit(model)
        trainer.fit(model)
    ours = [str(one.message) for one in caught if one.category.__name__ == "LightningPatchesWarning"]
    scenario.observe(weight=model.layer.weight.item(), warnings=ours)
    if CASE == "others":
        print(model.get_progress_bar_dict())
