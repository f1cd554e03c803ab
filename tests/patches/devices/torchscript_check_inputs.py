"""to_torchscript moves example_inputs to the model's device, and leaves check_inputs on the CPU. Cases: ``gpu``, the
model is on a simulated GPU; ``cpu``, on the CPU; ``hook``, on the CPU with a transfer hook."""

from _expect import bug, same

EXPECT = [
    bug(
        "gpu",
        stock="RuntimeError: Expected all tensors to be on the same device",
        patched=lambda seen: seen["same"] and seen["left"] == "cpu",
        simulated_cuda=True,
    ),
    same("cpu", "trace on the cpu is unchanged", lambda seen: not seen["hooked"], alone=True, on="2.5.1"),
    same("hook", "trace with a hook is unchanged", lambda seen: seen["hooked"], alone=True, on="2.5.1"),
]

import _scenario as scenario
import torch


class Model(scenario.BoringModel):
    hooked = 0

    def on_after_batch_transfer(self, batch, dataloader_idx):
        self.hooked += scenario.CASE == "hook"
        return batch


if __name__ == "__main__":
    model = Model().to("cuda:0" if scenario.CASE == "gpu" else "cpu")
    inputs = [(torch.ones(2, 32),), (torch.zeros(1, 32),)]
    with scenario.observing_errors():
        traced = model.to_torchscript(method="trace", example_inputs=torch.zeros(1, 32), check_inputs=inputs)
    given = torch.ones(1, 32, device=model.device)
    same = torch.equal(traced(given).cpu(), model(given).detach().cpu())
    scenario.observe(same=same, hooked=model.hooked, left=str(inputs[0][0].device))
