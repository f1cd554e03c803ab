"""Training on the CPU of a machine whose CUDA driver does not work. Cases: ``broken`` (like a driver that is too old:
torch counts a device but cannot use it), ``none`` (no device), ``works`` (one device, with a random state that is kept
over the sanity check)."""

from _expect import bug, same

BROKEN = "The NVIDIA driver on your system is too old"
RIGHT = {"error": None, "steps": 2, "asked": []}

EXPECT = [
    bug("broken", stock={"error": BROKEN, "steps": 0, "asked": ["0"]}, patched=RIGHT),
    same("none", "missing driver is not queried as on stock", RIGHT),
    same("works", "working driver is queried as on stock", {**RIGHT, "asked": ["0"]}),
]

import _scenario as scenario
import torch

asked = []


def state_of(device="cuda"):
    asked.append(str(device))
    if scenario.CASE == "broken":
        raise RuntimeError("The NVIDIA driver on your system is too old")
    return torch.zeros(16, dtype=torch.uint8)


if __name__ == "__main__":
    devices = 0 if scenario.CASE == "none" else 1
    torch.cuda.random.device_count = lambda: devices
    torch.cuda.is_available = lambda: scenario.CASE == "works"
    torch.cuda.random.get_rng_state = state_of
    torch.cuda.random.set_rng_state = lambda state, device="cuda": None
    trainer = scenario.trainer(devices=1, max_steps=2, limit_val_batches=1)
    error = None
    try:
        trainer.fit(scenario.BoringModel())
    except RuntimeError as raised:
        error = str(raised)
    scenario.observe(error=error, steps=trainer.global_step, asked=asked)
