"""Issue 20340 with Fabric: a layer that is unfrozen after setup, in a job of two ranks under DDP. Cases: ``hand``;
``hand-lr`` (it is never frozen, and has a learning rate of 0 at first); ``untrained`` (it is in no optimizer); ``one``
(one rank); ``dropped`` (the program drops the model, whose parameters must be freed)."""

from _expect import same, warns, whole_run


def are_alike(result):
    ranks = [{**rank, "head": None, "second": None} for rank in result.observations]
    return all(rank == ranks[0] for rank in ranks)


def differ(result):
    return not are_alike(result)


EXPECT = [
    warns(
        ["callback", "hand"],
        "diverging ranks cause one warning",
        "backbone.0.weight is the first) were frozen when DDP wrapped the module",
        stock=whole_run(differ),
        alone=True,
        program="ddp_with_unfrozen",
        on=("2.0.0", "2.6.6"),
    ),
    # ``hand-lr`` is the usage that the warning recommends.
    same(
        ["untrained", "hand-lr", "one"],
        "warning is absent if the ranks stay equal",
        whole_run(are_alike),
        alone=True,
        program="ddp_with_unfrozen",
    ),
    warns(
        "hand",
        "diverging ranks with fabric cause one warning",
        "from now on. Leave them unfrozen when Fabric.setup is called",
        stock=whole_run(differ),
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
    same(
        ["hand-lr", "untrained", "one"],
        "warning is absent with fabric if the ranks stay equal",
        whole_run(are_alike),
        alone=True,
    ),
    same("dropped", "freed fabric model is not kept in memory", [*2 * [{"gone": True, "warnings": []}]], alone=True),
]

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
