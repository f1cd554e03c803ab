"""The checkpoint of a model with compiled parts is loaded by plain PyTorch. Cases: ``parts`` are compiled; ``whole``:
and the model, too; ``none``; ``twins``: besides, there are two parameters whose names differ by ``_orig_mod`` alone.
With ``-renamed`` behind it, the model renames the entries itself; with ``-resumed``, a compiled model first resumes
from the checkpoint."""

from _expect import bug, fixed, same, whole_run


def _is_refused(result):
    return not result.ok and "_orig_mod" in result.output and "Unexpected key(s)" in result.output


EXPECT = [
    bug("parts", stock=whole_run(_is_refused), like="{}-renamed", needs=("torch:compile",)),
    bug("whole", stock=whole_run(_is_refused), like="{}-renamed", since="1.8.4", needs=("torch:compile",)),
    same("none", "names without compiled parts are unchanged"),
    same("twins", "ambiguous names are unchanged", "Missing key(s) in state_dict"),
    fixed(
        "parts-resumed",
        "compiled model resumes from the checkpoint",
        stock=whole_run(_is_refused),
        patched=lambda seen: not any("_orig_mod" in name for name in seen["saved"]),
        on=("2.1.0", "2.6.6"),
    ),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

CASE, _, HOW = scenario.CASE.partition("-")


class Model(scenario.pl.LightningModule):
    def __init__(self, compiled=CASE != "none"):
        super().__init__()
        self.layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        self.head = torch.nn.Linear(2, 1)
        if compiled:
            self.layer[1] = torch.compile(self.layer[1], backend="eager")
            self.layer = torch.compile(self.layer, backend="eager")
        if CASE == "twins":
            self.head._orig_mod = torch.nn.Linear(2, 1)

    def training_step(self, batch, batch_idx):
        return self.head(self.layer(batch[0])).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)


class Renaming(Model):
    def on_save_checkpoint(self, checkpoint):
        checkpoint["state_dict"] = renamed(checkpoint["state_dict"])


def renamed(state):
    return {name.replace("_orig_mod.", ""): value for name, value in state.items()}


if __name__ == "__main__":
    path = "a.ckpt"
    torch.manual_seed(1)
    batches = DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4)
    model = Renaming() if HOW == "renamed" else Model()
    trainer = scenario.trainer(max_epochs=1)
    trainer.fit(torch.compile(model, backend="eager") if CASE == "whole" else model, batches)
    trainer.save_checkpoint(path)
    saved = torch.load(path, weights_only=False)["state_dict"]
    scenario.observe(saved=saved)
    if HOW == "resumed":
        model = Model()
        scenario.trainer(max_epochs=2).fit(model, batches, ckpt_path=path)
        scenario.observe(resumed=renamed(model.state_dict()))
    with scenario.observing_errors():
        torch.nn.Module.load_state_dict(Model(compiled=False), saved)
