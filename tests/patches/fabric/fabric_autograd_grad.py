"""The gradient of a Fabric module's output by ``torch.autograd.grad``. Cases: ``bf16``, ``bf16 backward``, ``16``, and
``bf16 autocast`` (the recommended usage), ``bf16 backward autocast``, ``32``."""

from _expect import bug, same

REFUSED = "requires you to call `fabric.backward(loss)`"

EXPECT = [
    bug(["bf16", "bf16 backward"], stock=REFUSED, like="{} autocast"),
    same("16", "a backward without scaling is refused", REFUSED),
    same("32", "without mixed precision, nothing changes"),
]

import _scenario as scenario
import torch

Fabric = scenario.fabric().Fabric
WORDS = scenario.CASE.split()

if __name__ == "__main__":
    torch.manual_seed(0)
    options = {"precision": "bf16-mixed"} if WORDS[0] == "bf16" else {}
    if WORDS[0] == "16":
        scaler = torch.amp.GradScaler("cpu")
        options = {"plugins": [scenario.fabric("plugins").MixedPrecision("16-mixed", "cpu", scaler=scaler)]}
    fabric = Fabric(accelerator="cpu", devices=1, **options)
    critic = fabric.setup_module(torch.nn.Linear(2, 1))
    x = torch.ones(3, 2, requires_grad=True)
    if WORDS[-1] == "autocast":
        with fabric.autocast():
            score = critic.module(x).float()
    else:
        score = critic(x)
    with scenario.observing_errors():
        if "backward" in WORDS:
            score.sum().backward()
            scenario.observe(gradients=[x.grad, critic.weight.grad])
        else:
            scenario.observe(gradients=torch.autograd.grad(score.sum(), x, create_graph=True))
