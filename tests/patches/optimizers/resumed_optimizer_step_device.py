"""The device of an optimizer's step count after a resume, and the number of waits to read it. Cases: ``adam``,
``capturable`` (Adam whose step count belongs on the device), ``vector`` (a user's optimizer whose step count is a
vector). Needs a CUDA device, simulated or real."""

from _expect import bug, fixed, same, same_calls


def devices(seen):
    return {device for device, _ in seen["steps"]}


EXPECT = [
    bug("adam", stock=lambda seen: "cuda:0" in devices(seen), simulated_cuda=True, one_card=True),
    same(
        ["capturable", "vector"],
        "step count of a fused optimizer moves to the device",
        lambda seen: devices(seen) == {"cuda:0"},
        simulated_cuda=True,
    ),
    fixed(
        "adam",
        "step count stays on the CPU",
        stock=lambda seen: all(waits >= 2 for waits in seen["waits"]),  # two parameters
        patched=lambda seen: seen["waits"] == [0, 0, 0] and devices(seen) == {"cpu"},
        simulated_cuda=True,
        on=("2.0.0", "2.3.3"),
    ),
    same("adam", "weights are unchanged", compare="weights", simulated_cuda=True, on=("2.0.0", "2.3.3")),
    same_calls("black_box", "optimizer without parameters resumes", on="2.0.0"),
]

import _scenario as scenario
import torch
from _model import Linear, mean_square
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset


class Waits(TorchDispatchMode):
    """Counts how often a number is read from the device."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._local_scalar_dense.default and args[0].device.type == "cuda":
            self.count += 1
        return function(*args, **(kwargs or {}))


class Warm(torch.optim.Optimizer):
    """An optimizer with growing steps. Its step count is a vector of one element for each parameter."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        with torch.enable_grad():
            loss = closure()
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            if not state:
                state["step"] = torch.zeros(1, device=parameter.device)
            state["step"] += 1
            parameter.data.sub_(parameter.grad * torch.log(state["step"] + torch.ones_like(parameter)))
        return loss


class Model(Linear):
    loss = staticmethod(mean_square)

    def __init__(self):
        super().__init__()
        self.waits = []

    def optimizer_step(self, *args, **kwargs):
        with Waits() as waits:
            super().optimizer_step(*args, **kwargs)
        self.waits.append(waits.count)

    def on_train_end(self):
        states = self.trainer.optimizers[0].state.values()
        scenario.observe(
            steps=[(str(state["step"].device), state["step"].tolist()) for state in states], waits=self.waits
        )

    def configure_optimizers(self):
        if scenario.CASE == "vector":
            return Warm(self.parameters())
        return torch.optim.Adam(self.parameters(), capturable=scenario.CASE == "capturable")


def train(max_steps, checkpoint=None):
    scenario.pl.seed_everything(3)
    model = Model()
    trainer = scenario.trainer(accelerator="gpu", devices=1, max_steps=max_steps)
    trainer.fit(model, DataLoader(TensorDataset(torch.arange(12.0).reshape(6, 2)), batch_size=1), ckpt_path=checkpoint)
    return trainer, model


if __name__ == "__main__":
    path = "half.ckpt"
    train(3)[0].save_checkpoint(path)
    _, model = train(6, path)
    scenario.observe(weights=list(model.parameters()))
