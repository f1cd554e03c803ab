"""Issue 20340 with Fabric: a layer that is unfrozen after setup, in a job of two ranks under DDP. Cases: ``hand``;
``hand-lr`` (it is never frozen, and has a learning rate of 0 at first); ``untrained`` (it is in no optimizer); ``one``
(one rank); ``dropped`` (the program drops the model, whose parameters must be freed)."""

import gc
import weakref

import _scenario as scenario
import torch

CASE, _, LR = scenario.CASE.partition("-")


def train(fabric):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    model[0].requires_grad_(bool(LR))
    groups = [{"params": model[1].parameters()}]
    if CASE != "untrained":
        groups.append({"params": model[0].parameters(), "lr": 0.0})
    wrapped, optimizer = fabric.setup(model, torch.optim.SGD(groups, lr=0.1))
    if CASE == "dropped":
        weights = weakref.ref(model[0].weight)
        del model, wrapped, optimizer, groups
        gc.collect()
        return {"gone": weights() is None}
    torch.manual_seed(fabric.global_rank)
    for step in range(4):
        if step == 2:
            model[0].requires_grad_(True)
            optimizer.param_groups[-1]["lr"] = 0.1
        optimizer.zero_grad()
        fabric.backward(wrapped(torch.randn(2, 4)).pow(2).mean())
        optimizer.step()
    return {"first": model[0].weight, "second": model[1].weight}


if __name__ == "__main__":
    ranks = {"devices": 1} if CASE == "one" else {"devices": 2, "strategy": "ddp"}
    fabric = scenario.fabric().Fabric(accelerator="cpu", **ranks)
    fabric.launch()
    fabric.seed_everything(1)
    with scenario.observing_warnings():
        seen = train(fabric)
    scenario.observe(**seen)
