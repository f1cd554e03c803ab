"""A training step in mixed precision that runs a layer without gradients first, and then with them. Cases: ``no_grad``,
``inference_mode``, ``decorator``, ``switch`` (torch.set_grad_enabled called as a function), ``enable_grad`` (the
training forward is inside no_grad), ``checkpoint`` (a reentrant checkpoint, another way to leave no_grad), ``all`` (the
whole model: training ends with an error), and each of the first five with ``_by_hand``: the cache is emptied by the
program. ``counted``: as ``no_grad``, and the program counts torch's operations."""

from _expect import bug, fixed, same

EXPECT = [
    bug(["no_grad", "inference_mode"], stock={"body_trained": False}, like="{}_by_hand", old_torch=True),
    *[
        fixed(
            case,
            "layers get their gradients",
            stock={"body_trained": False},
            patched={"body_trained": True, "torch_as_before": True},
            alone=True,
            old_torch=True,
            on=version,
        )
        for case, version in (
            ("decorator", "2.0.0"),
            ("switch", "2.1.0"),
            ("enable_grad", "2.1.1"),
            ("checkpoint", "2.2.5"),
        )
    ],
    fixed(
        "all",
        "training continues where stock raises",
        stock="element 0 of tensors does not require grad and does not have a grad_fn",
        patched={},
        alone=True,
        old_torch=True,
        on="2.2.5",
    ),
    *[
        same(case, "nothing changes with a fixed torch", {"body_trained": True}, alone=True, on=version)
        for case, version in (("no_grad", "2.0.0"), ("counted", "2.2.5"), ("inference_mode", "2.5.4"))
    ],
]

from collections import Counter
from contextlib import nullcontext

import _scenario as scenario
import torch
from _model import Module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

KIND = scenario.CASE.replace("_by_hand", "")
BY_HAND = scenario.CASE.endswith("_by_hand")


class Model(Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 1)

    def target(self, batch):
        return self.body(batch).detach()

    @torch.no_grad()
    def decorated(self, batch):
        return self.body(batch)

    def without_grad(self, batch):
        if KIND == "inference_mode":
            with torch.inference_mode():
                return self.target(batch).sum().item()
        if KIND == "decorator":
            return self.decorated(batch)
        if KIND == "switch":
            torch.set_grad_enabled(False)
            target = self.target(batch)
            torch.set_grad_enabled(True)
            return target
        if KIND == "checkpoint":
            return checkpoint(self.body, batch.clone().requires_grad_(), use_reentrant=True).detach()
        with torch.no_grad():
            return self.head(self.body(batch)) if KIND == "all" else self.target(batch)

    def with_grad(self, batch, target):
        if BY_HAND:
            torch.clear_autocast_cache()
        return self.head(self.body(batch)).float() - target.sum() if KIND == "all" else self.head(self.body(batch))

    def training_step(self, batch, batch_idx):
        if KIND == "enable_grad":
            with torch.no_grad():
                self.target(batch)
                with torch.enable_grad():
                    return self.with_grad(batch, None).pow(2).mean()
        return self.with_grad(batch, self.without_grad(batch)).pow(2).mean()


class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operations[str(func)] += 1
        return func(*args, **(kwargs or {}))


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    model = Model()
    before = model.body.weight.clone()
    trainer = scenario.trainer(max_epochs=1, precision=scenario.precision("bf16-mixed"))
    hooked = [vars(torch.no_grad)["__exit__"], vars(torch.set_grad_enabled)["__init__"]]
    with scenario.observing_errors(), Counted() if KIND == "counted" else nullcontext() as counted:
        trainer.fit(model, DataLoader(torch.arange(32.0).reshape(8, 4) / 32, batch_size=2))
    scenario.observe(
        body_trained=not torch.equal(before, model.body.weight),
        weights=list(model.parameters()),
        operations=counted and dict(counted.operations),
        torch_as_before=hooked == [vars(torch.no_grad)["__exit__"], vars(torch.set_grad_enabled)["__init__"]],
    )
