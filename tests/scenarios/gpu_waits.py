"""Issues 21232 and 21487: where a training step of Lightning waits for the GPU, step by step.

Cases: ``alone`` (one device, a training for each feature), ``ranks`` (DDP on two). Counted are, in
ten steps of one epoch: numbers read from the device, copies between it and the host that are not said to be
non-blocking, tensors made there from Python's numbers, and collectives that are not of the gradients.
"""

import collections

import _scenario as scenario
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader

pl = scenario.pytorch()
FIRST, STEPS = 2, 10
counts = collections.Counter()
counting = False


def count(what):
    if counting:
        counts[what] += 1


def device(value):
    return value.device.type if isinstance(value, torch.Tensor) else None


class BelowTorch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if function is torch.ops.aten._local_scalar_dense.default and device(args[0]) == "cuda":
            count("read")
        moves = function is torch.ops.aten._to_copy.default and not (kwargs or {}).get("non_blocking")
        fills = function is torch.ops.aten.copy_.default and not any(args[2:])
        if (moves and device(args[0]) != device(made)) or (fills and device(args[0]) != device(args[1])):
            count("copied")
        return made


class AboveTorch(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.tensor and torch.device((kwargs or {}).get("device") or "cpu").type == "cuda":
            count("made")
        return function(*args, **(kwargs or {}))


def count_calls(name):
    """Count calls of a function of ``torch.distributed``, which excludes the collectives for gradients."""
    real = getattr(torch.distributed, name)

    def counted(*args, **kwargs):
        count(name)
        return real(*args, **kwargs)

    setattr(torch.distributed, name, counted)


class Switch(pl.Callback):
    """Enables counting from the start of one batch to the start of another."""

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        global counting
        counting = FIRST <= batch_idx < FIRST + STEPS


class Model(pl.LightningModule):
    def __init__(self, does):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)
        self.does = does

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).pow(2).mean()
        if self.does == "tensor":
            self.log("loss", loss, on_step=True, on_epoch=True)
        elif self.does == "ten":
            for number in range(10):
                self.log(f"loss {number}", loss, prog_bar=True, on_step=True, on_epoch=True)
        elif self.does == "largest":
            self.log("loss", loss, on_step=False, on_epoch=True, reduce_fx="max")
        elif self.does == "shown":
            self.log("loss", loss, prog_bar=True)
        elif self.does == "tensor of the CPU":
            self.log("rate", torch.tensor(0.5))
        elif self.does == "number":
            self.log("rate", 0.5)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1 / 64, foreach=False)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1000)]


def waits(does="nothing", **options):
    """Return the waits for the GPU in ten steps, by kind. The batches are already on the device."""
    counts.clear()
    data = DataLoader(torch.arange(1.0, 33.0)[:, None].cuda())
    trainer = scenario.trainer(accelerator="gpu", max_epochs=1, callbacks=[Switch()], limit_train_batches=14, **options)
    with BelowTorch(), AboveTorch():
        trainer.fit(Model(does), data)
    return dict(counts)


if __name__ == "__main__":
    if scenario.CASE == "ranks":
        for name in ("broadcast", "all_reduce", "all_gather", "barrier"):
            count_calls(name)
        scenario.observe(nothing=waits(devices=2, strategy="ddp"))
    else:
        found = {"clipped": waits(devices=1, gradient_clip_val=1.0)}
        for does in ("nothing", "tensor", "largest", "shown", "ten", "tensor of the CPU", "number"):
            found[does] = waits(does, devices=1)
        scenario.observe(**found)
