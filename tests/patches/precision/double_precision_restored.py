"""With precision="64-true", loading a checkpoint rounds its weights to float32. Cases: ``fit``, ``validate``, ``test``
and ``predict`` with a checkpoint, each with ``-converted`` for a model that the program converts, ``single`` (32-true
precision), ``own`` (the module has its own double())."""

from _expect import bug, same

EXPECT = [
    bug(
        ["fit", "validate", "test", "predict"],
        stock={"exact": False, "dtype": "torch.float64"},
        patched={"exact": True},
        like="{}-converted",
    ),
    same(["single", "own", "fit-converted"], "program that needs no fix is unchanged"),
]

import _scenario as scenario
import torch

KIND, _, HOW = scenario.CASE.partition("-")
PRECISION = "32-true" if KIND == "single" else "64-true"
PATH = "weights.ckpt"


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(32, 2)
        self.doubled = 0


class Own(Model):
    def double(self):
        self.doubled += 1
        return super().double()


def trainer(steps):
    return scenario.trainer(max_steps=steps, precision=PRECISION, limit_test_batches=1)


if __name__ == "__main__":
    kind = Own if KIND == "own" else Model
    first, second = kind(), kind()
    trained = trainer(3)
    trained.fit(first)
    trained.save_checkpoint(PATH)
    if HOW == "converted":
        second = second.double()
    getattr(trainer(3), KIND if KIND in ("fit", "validate", "test", "predict") else "fit")(second, ckpt_path=PATH)
    scenario.observe(
        exact=bool((first.layer.weight == second.layer.weight).all()),
        dtype=str(second.layer.weight.dtype),
        weight=second.layer.weight,
        doubled=second.doubled,
    )
