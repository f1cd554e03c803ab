"""An error in train_dataloader(), then a DataLoader of the program. Case: ``none`` for the same without errors."""

from _expect import bug

EXPECT = [bug(stock={"depth": 2, "recorded": True}, patched={"depth": 0, "recorded": False}, like="none")]

import contextlib

import _scenario as scenario
from torch.utils.data import DataLoader


class Model(scenario.BoringModel):
    def train_dataloader(self):
        loader = super().train_dataloader()
        if scenario.CASE != "none":
            raise FileNotFoundError("no data")
        return loader


def depth(function):
    return depth(function.__wrapped__) + 1 if hasattr(function, "__wrapped__") else 0


if __name__ == "__main__":
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            scenario.trainer(max_steps=1, limit_val_batches=0).fit(Model())
    recorded = any("__pl" in name for name in vars(DataLoader([1])))
    scenario.observe(depth=depth(DataLoader.__init__), recorded=recorded)
