"""Python numbers and many batches are logged. Cases: ``exact`` (tensors in double precision are logged)."""

from _expect import bug, same

RIGHT = {"int": 16777217.0, "huge": 1e300, "mean": 4097.1}
EXPECT = [
    bug(stock={"int": 16777216.0}, patched=RIGHT, like="exact"),
    same("exact", "values in double precision are unchanged", RIGHT, on=("2.0.0", "2.6.6")),
]

import _scenario as scenario
import torch

TYPE = torch.float64 if scenario.CASE else None


class Model(scenario.BoringModel):
    def validation_step(self, batch, batch_idx):
        for name, value in {"int": 16777217, "huge": 1e300}.items():
            self.log(name, torch.tensor(value, dtype=TYPE) if TYPE else value)
        for _ in range(1000):
            self.log("mean", torch.tensor(4097.1, dtype=TYPE) if TYPE else 4097.1)


if __name__ == "__main__":
    (result,) = scenario.trainer(accelerator="cpu", limit_val_batches=4).validate(Model(), verbose=False)
    scenario.observe(**{name: round(value, 6) if value < 1e100 else value for name, value in result.items()})
