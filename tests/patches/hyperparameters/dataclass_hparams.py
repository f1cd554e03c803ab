"""A LightningModule that is a dataclass, with a field that is set later. CASE "set": it is set before."""

from _expect import bug, same


def _fields_of_init(seen):
    return seen["names"] == seen["initial"] == ["rate", "width"] and seen["left_behind"] == [] and seen["width"] == 3


EXPECT = [
    bug(stock="object has no attribute 'layer'", patched=_fields_of_init),
    same("set", "dataclass with set fields is unchanged"),
]

import dataclasses

import _scenario as scenario
import torch


@dataclasses.dataclass(eq=False)
class Model(scenario.pl.LightningModule):
    width: int
    rate: float = 0.1
    secret: str = "hidden"
    layer: torch.nn.Module = dataclasses.field(init=False)
    label: str = dataclasses.field(init=False)

    def __post_init__(self):
        super().__init__()
        if scenario.CASE == "set":
            self.layer, self.label = torch.nn.Linear(1, 1), "one"
        self.save_hyperparameters(ignore=["secret"])
        self.layer = torch.nn.Linear(self.width, 1)


if __name__ == "__main__":
    with scenario.observing_errors():
        model = Model(width=3)
    scenario.observe(
        names=sorted(model.hparams),
        initial=sorted(model.hparams_initial),
        width=model.layer.in_features,
        left_behind=sorted({"layer", "label"} & set(vars(model))),
        taken=[model.hparams.width, model.hparams.rate],
    )
