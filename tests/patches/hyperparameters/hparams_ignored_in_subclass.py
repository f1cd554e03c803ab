"""A subclass ignores an argument that its base class has saved."""

from _expect import bug


def _saved(seen):
    return seen["derived"].get("backbone") == "large" and "backbone" in seen["saved"]


def _left_out(seen):
    return (
        seen["derived"] == seen["initial"] == {"width": 2, "rate": (0.1).hex()}
        and seen["saved"] == ["rate", "width"]
        and seen["listed"] == {"width": 2, "depth": 2}
        and seen["untouched"] == {"width": 2, "backbone": "large"}
    )


EXPECT = [bug(stock=_saved, patched=_left_out)]

import _scenario as scenario
import torch

PATH = "model.ckpt"


class Base(scenario.pl.LightningModule):
    def __init__(self, width, backbone):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(width, 1)


class Derived(Base):
    def __init__(self, width, backbone, rate=0.1):
        super().__init__(width, backbone)
        self.save_hyperparameters(ignore="backbone")


class Listed(Base):
    def __init__(self, width, backbone):
        super().__init__(width, backbone)
        self.save_hyperparameters({"backbone": backbone, "depth": 2}, ignore=["backbone"])


class Unrelated(Base):
    def __init__(self, width, backbone):
        super().__init__(width, backbone)
        self.save_hyperparameters({}, ignore=["backbone"])


if __name__ == "__main__":
    derived = Derived(2, backbone="large")
    trainer = scenario.trainer(max_epochs=1)
    trainer.strategy.connect(derived)
    trainer.save_checkpoint(PATH, weights_only=True)
    saved = torch.load(PATH, weights_only=False)
    scenario.observe(
        derived=dict(derived.hparams),
        initial=dict(derived.hparams_initial),
        saved=sorted(saved["hyper_parameters"]),
        listed=dict(Listed(2, "large").hparams),
        untouched=dict(Unrelated(2, "large").hparams),
    )
