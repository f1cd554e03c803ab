"""The model of most scenarios: one linear layer, which SGD trains."""

import _scenario as scenario
import torch


class Linear(scenario.pytorch().LightningModule):
    """Subclasses may change the attributes. ``weight`` is the initial weight, with a bias of 0; random if ``None``."""

    features, bias, weight, lr = 2, True, None, 0.1

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(self.features, 1, bias=self.bias)
        if self.weight is not None:
            torch.nn.init.constant_(self.layer.weight, self.weight)
            if self.bias:
                torch.nn.init.zeros_(self.layer.bias)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)
