"""The model of most scenarios: one linear layer, which SGD trains."""

import _scenario as scenario
import torch


class Linear(scenario.pytorch().LightningModule):
    features = 2

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(self.features, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
