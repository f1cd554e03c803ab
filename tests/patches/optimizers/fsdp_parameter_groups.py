"""PR 17914. FSDP, and an optimizer with an unrelated parameter in its first group. Case: ``none``, without other
groups."""

from _expect import bug, same

MESSAGE = "The optimizer does not seem to reference any FSDP parameters"

EXPECT = [
    bug(stock=MESSAGE, patched={"steps": 2}, simulated_cuda=True, one_card=True),
    same("none", "optimizer without parameters is refused as on stock", MESSAGE, simulated_cuda=True),
]

import _scenario as scenario
import torch


class Model(scenario.BoringModel):
    def configure_optimizers(self):
        groups = [{"params": [torch.nn.Parameter(torch.ones(1))]}]
        if scenario.CASE != "none":
            groups.append({"params": list(self.trainer.model.parameters())})
        return torch.optim.SGD(groups, lr=0.1)


if __name__ == "__main__":
    trainer = scenario.trainer(accelerator="gpu", devices=1, strategy="fsdp", max_steps=2, limit_val_batches=0)
    with scenario.observing_errors():
        trainer.fit(Model())
    scenario.observe(steps=trainer.global_step)
