"""Issues 17415 and 20233: a checkpoint is loaded by a model that is compiled differently.

Cases: ``load`` (load_from_checkpoint), ``fit`` and ``test`` (ckpt_path), ``plain`` (the model that fits is compiled,
not the one that was saved), ``inner`` (other parts were compiled). With ``-same`` behind it, the model is compiled as
the one that was saved. ``other``, ``missing``, ``shape``: besides, there is an entry too many, too few, or of another
shape; ``loose``: one too many, and strict is False; ``own``: the model overrides load_state_dict; ``old``: one too
many, and the model's named_modules has the parameters of torch 1.8; ``part``: one too many, and a part of the model
overrides its loading; ``bare``: the entries have no metadata.
"""

from _expect import bug, fixed, same, same_calls, whole_run

EXPECT = [
    *[
        bug(
            case,
            stock=whole_run(
                lambda result: not result.ok and "_orig_mod" in result.output and ("Missing key(s)" in result.output)
            ),
            patched=lambda seen, trains=trains: seen["same"] is not trains,
            like=f"{case}-same",
            needs=("torch:compile",),
        )
        for case, trains in (("load", False), ("test", False), ("fit", True), ("plain", True), ("inner", True))
    ],
    # The weights stay unchanged, since a program may catch the error and continue to train.
    same(
        ["other", "missing", "shape", "old", "part"],
        "strict load still requires all other names",
        "Missing key(s)",
        on=("2.0.0", "2.6.6"),
    ),
    fixed(
        ["own", "bare"],
        "model with a custom method loads",
        stock=whole_run(lambda result: not result.ok),
        patched=lambda seen: seen["same"],
    ),
    # torch raises no error. Mismatched entries are not loaded.
    same("loose", "load that is not strict is unchanged", lambda seen: not seen["same"]),
    same_calls("traced", "model with a traced part refuses as on stock"),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

CASE, _, SAME = scenario.CASE.partition("-")
COMPILED = ("layer",) if CASE != "plain" else ()
"""The compiled parts of the saved model."""
COMPILED_THEN = COMPILED if SAME else {"plain": ("layer",), "inner": ("parts.0",)}.get(CASE, ())


class Model(scenario.pl.LightningModule):
    def __init__(self, compiled=COMPILED_THEN):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.parts = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))
        if "layer" in compiled:
            self.layer = torch.compile(self.layer, backend="eager")
        if "parts.0" in compiled:
            self.parts[0] = torch.compile(self.parts[0], backend="eager")

    def training_step(self, batch, batch_idx):
        return self.parts(self.layer(batch[0])).square().mean()

    def test_step(self, batch, batch_idx):
        pass

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)


class Own(Model):
    def load_state_dict(self, state_dict, *args, **kwargs):
        return super().load_state_dict(dict(state_dict), *args, **kwargs)


class Old(Model):
    def named_modules(self, memo=None, prefix=""):
        return super().named_modules(memo, prefix)


class Scale(torch.nn.Module):
    def _load_from_state_dict(self, state_dict, *args):
        state_dict.pop("scale.old", None)


class Part(Model):
    def __init__(self):
        super().__init__()
        self.scale = Scale()


class Bare(Model):
    def load_state_dict(self, state_dict, *args, **kwargs):
        state_dict._metadata = None
        return super().load_state_dict(state_dict, *args, **kwargs)


def weights(model):
    return {name.replace("_orig_mod.", ""): value for name, value in model.state_dict().items()}


if __name__ == "__main__":
    path = "a.ckpt"
    torch.manual_seed(1)
    batches = DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4)
    model = Model(COMPILED)
    trainer = scenario.trainer(max_epochs=1)
    trainer.fit(model, batches)
    trainer.save_checkpoint(path)
    saved = weights(model)
    refused = CASE in ("other", "missing", "shape", "old", "part")
    if refused or CASE == "loose":
        checkpoint = torch.load(path, weights_only=False)
        if CASE == "missing":
            del checkpoint["state_dict"]["parts.1.bias"]
        elif CASE == "shape":
            checkpoint["state_dict"]["parts.1.bias"] = torch.ones(2)
        else:
            checkpoint["state_dict"]["layer._orig_mod.scale"] = torch.ones(1)
        torch.save(checkpoint, path)
    with scenario.observing_errors():
        if CASE in ("fit", "plain", "inner"):
            model = Model()
            scenario.trainer(max_epochs=2).fit(model, batches, ckpt_path=path)
        elif CASE == "test":
            model = Model()
            scenario.trainer().test(model, batches, ckpt_path=path, verbose=False)
        elif refused:
            model = {"old": Old, "part": Part}.get(CASE, Model)()
            before = {name: value.clone() for name, value in weights(model).items()}
            try:
                model.load_state_dict(torch.load(path, weights_only=False)["state_dict"])
            finally:
                now = weights(model)
                scenario.observe(untouched=[name for name in before if torch.equal(now[name], before[name])])
        else:
            model = {"own": Own, "bare": Bare}.get(CASE, Model).load_from_checkpoint(path, strict=CASE != "loose")
    loaded = weights(model)
    scenario.observe(loaded=loaded, same=all(torch.equal(loaded[name], saved[name]) for name in saved))
