"""The modes of two batch norm layers, of which one is in evaluation mode, after they were synchronized."""

from _expect import bug

EXPECT = [bug(stock={"modes": [True, True]}, patched={"modes": [True, False]}, like="none")]

import _scenario as scenario
import torch

if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4))
    model[1].eval()
    if scenario.CASE != "none":
        plugin = scenario.pytorch("plugins").TorchSyncBatchNorm()
        model = plugin.revert(plugin.apply(model))
    scenario.observe(modes=[layer.training for layer in model])
