"""A metric of torchmetrics in a model under FSDP. Cases: ``trainer``, ``fabric``."""

from _expect import bug

EXPECT = [
    *[
        bug(
            case,
            stock="Encountered different devices in metric calculation",
            patched={"total": total},
            simulated_cuda=True,
            one_card=True,
        )
        for case, total in (("trainer", 2.0), ("fabric", 1.0))
    ]
]

import _scenario as scenario
import torch
import torchmetrics


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.metric = torchmetrics.SumMetric()

    def training_step(self, batch, batch_idx):
        self.metric.update(torch.ones(1, device=batch.device))
        return super().training_step(batch, batch_idx)

    def configure_optimizers(self):
        return torch.optim.SGD(self.trainer.model.parameters(), lr=0.1)


if __name__ == "__main__":
    model = Model()
    if scenario.CASE == "fabric":
        fabric = scenario.fabric().Fabric(accelerator="gpu", devices=1, strategy="fsdp")
        fabric.launch()
        fabric.setup_module(model)
        model.metric.update(torch.ones(1, device=fabric.device))
    else:
        options = {"accelerator": "gpu", "devices": 1, "strategy": "fsdp"}
        trainer = scenario.trainer(**options, max_steps=2, limit_val_batches=0)
        trainer.fit(model)
    scenario.observe(total=model.metric.compute().item())
