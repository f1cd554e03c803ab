"""fit with a checkpoint that was saved with save_weights_only=True. Cases: "", ``steps`` (max_steps, with a scheduler),
``whole`` (a checkpoint with the optimizer's state), ``part`` (one that lacks only the schedulers' state); ``by-hand``:
the weights are loaded by hand, and the loops get their state."""

from _expect import bug, patched, same

EXPECT = [
    # Not compared: That a warning says so is left out.
    *[
        bug(
            case,
            stock="Trying to restore optimizer state but checkpoint contains only the model",
            compare=("seen", "weights", "lr"),
            like=f"{case}-by-hand" if case else "by-hand",
        )
        for case in ("", "steps")
    ],
    same("whole", "other checkpoints are loaded as on stock", alone=True),
    same(
        "part",
        "incomplete checkpoints are refused as on stock",
        "restore learning rate scheduler state but checkpoint contains only the model",
        alone=True,
    ),
    patched(
        "",
        "warning reports the missing optimizer state",
        lambda seen: len(seen["warnings"]) == 1 and "start again" in seen["warnings"][0],
        alone=True,
    ),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset

CASE = scenario.CASE


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        torch.nn.init.ones_(self.layer.weight)
        torch.nn.init.zeros_(self.layer.bias)
        self.seen = []

    def training_step(self, batch, batch_idx):
        self.seen.append([self.trainer.current_epoch, batch_idx, self.trainer.global_step])
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]


class ByHand(scenario.pl.Callback):
    def on_fit_start(self, trainer, model):
        checkpoint = torch.load(PATH, weights_only=False)
        model.load_state_dict(checkpoint["state_dict"])
        trainer.fit_loop.load_state_dict(checkpoint["loops"]["fit_loop"])


if __name__ == "__main__":
    PATH = "a.ckpt"
    batches = DataLoader(TensorDataset(torch.arange(8.0).view(4, 2) / 8), batch_size=2)
    trainer = scenario.trainer(max_epochs=2)
    trainer.fit(Model(), batches)
    trainer.save_checkpoint(PATH, weights_only=CASE not in ("whole", "part"))
    if CASE == "part":
        checkpoint = torch.load(PATH, weights_only=False)
        del checkpoint["lr_schedulers"]
        torch.save(checkpoint, PATH)
    steps = {"max_steps": 7} if CASE.startswith("steps") else {"max_epochs": 4}
    by_hand = CASE.endswith("by-hand")
    model, trainer = Model(), scenario.trainer(callbacks=ByHand() if by_hand else None, **steps)
    with scenario.observing_errors(), scenario.observing_warnings():
        trainer.fit(model, batches, ckpt_path=None if by_hand else PATH)
    scenario.observe(seen=model.seen, weights=model.layer.weight, lr=trainer.optimizers[0].param_groups[0]["lr"])
