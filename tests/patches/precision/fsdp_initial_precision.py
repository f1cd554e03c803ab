"""A model made within Fabric.init_module(), or in configure_model(), for FSDP with mixed precision. Cases: ``fabric``
(bf16-mixed), ``trainer`` (16-mixed), ``true`` (Fabric, bf16-true). Needs CUDA devices, simulated or real; one is
enough."""

from _expect import bug, fixed, same


def _dtypes(name):
    return {"dtypes": [name] * 2}


EXPECT = [
    *[
        bug(
            case,
            stock=_dtypes(half),
            patched=_dtypes("torch.float32"),
            since="2.1.0",
            simulated_cuda=True,
            one_card=True,
        )
        for case, half in (("fabric", "torch.bfloat16"), ("trainer", "torch.float16"))
    ],
    same("true", "true half precision stays half", {"dtypes": ["torch.bfloat16"] * 2}, simulated_cuda=True),
    fixed(
        "trainer",
        "small steps are not rounded away",
        stock=lambda seen: seen["trained"] == seen["values"],
        patched=lambda seen: all(a != b for a, b in zip(sum(seen["trained"], []), sum(seen["values"], []))),
        simulated_cuda=True,
    ),
]

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, TensorDataset


class Model(scenario.pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = None
        self.seen = {}

    def configure_model(self):
        if self.layer is None:
            self.layer = torch.nn.Linear(4, 4)
            self.seen = described(self.layer)

    def training_step(self, batch, batch_idx):
        return self.layer(batch[0]).mean()

    def on_train_end(self):
        self.seen["trained"] = list(self.layer.parameters())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-5)  # steps that float16 rounds away


def described(layer):
    return {
        "dtypes": [str(parameter.dtype) for parameter in layer.parameters()],
        "values": [parameter.detach().clone() for parameter in layer.parameters()],
    }


if __name__ == "__main__":
    if scenario.CASE == "trainer":
        trainer = scenario.trainer(accelerator="gpu", devices=1, strategy="fsdp", precision="16-mixed", max_epochs=1)
        scenario.pl.seed_everything(3)
        model = Model()
        trainer.fit(model, DataLoader(TensorDataset(torch.ones(4, 4))))
        seen = model.seen
    else:
        precision = "bf16-true" if scenario.CASE == "true" else "bf16-mixed"
        fabric = scenario.fabric().Fabric(accelerator="gpu", devices=1, strategy="fsdp", precision=precision)
        fabric.launch()
        fabric.seed_everything(3)
        with fabric.init_module():
            layer = torch.nn.Linear(4, 4)
        seen = described(layer)
    scenario.observe(**seen)
