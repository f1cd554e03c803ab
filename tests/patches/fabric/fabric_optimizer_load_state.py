"""A Fabric training that is saved, loaded into new objects and continued. The new optimizer is made with another
learning rate, like a script's default that the checkpoint overrides."""

from _expect import bug, same_calls

RATE = (0.01).hex()


def begins_anew(seen):
    return seen["resumed"] != seen["uninterrupted"] and (seen["shown"], seen["used"]) == (RATE, (9.0).hex())


def goes_on(seen):
    rates = seen["shown"], seen["used"], seen["set_later"]
    return seen["resumed"] == seen["uninterrupted"] and rates == (RATE, RATE, (0.5).hex())


EXPECT = [
    bug(stock=begins_anew, patched=goes_on),
    same_calls("wrapping_optimizer", "wrapping optimizer steps", on="2.0.0"),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric
INPUTS = torch.arange(8.0).reshape(4, 2) / 8


def set_up(lr):
    torch.manual_seed(7)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    return fabric.setup(model, optimizer)


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        fabric.backward(model(INPUTS).pow(2).mean())
        optimizer.step()


def save(path, state):
    if scenario.is_1x():
        fabric.save({name: one.state_dict() for name, one in state.items()}, path)
    else:
        fabric.save(path, state)


def load(path, state):
    if scenario.is_1x():
        saved = fabric.load(path)
        for name, one in state.items():
            one.load_state_dict(saved[name])
    else:
        fabric.load(path, state)


if __name__ == "__main__":
    fabric = Fabric(accelerator="cpu", devices=1)
    checkpoint = "fabric.ckpt"
    model, optimizer = set_up(lr=0.01)
    train(model, optimizer, 3)
    save(checkpoint, {"model": model, "optimizer": optimizer})
    train(model, optimizer, 3)

    resumed, its_optimizer = set_up(lr=9.0)
    load(checkpoint, {"model": resumed, "optimizer": its_optimizer})
    scheduler = torch.optim.lr_scheduler.LambdaLR(its_optimizer, lambda step: 1.0)
    train(resumed, its_optimizer, 3)
    shown, used = its_optimizer.param_groups[0]["lr"], its_optimizer.optimizer.param_groups[0]["lr"]
    its_optimizer.param_groups[0]["lr"] = 0.5
    scenario.observe(
        uninterrupted=list(model.parameters()),
        resumed=list(resumed.parameters()),
        shown=shown,
        used=used,
        scheduled=scheduler.get_last_lr(),
        set_later=its_optimizer.optimizer.param_groups[0]["lr"],
        state={str(k): v for k, v in its_optimizer.state_dict()["state"].items()},
    )
