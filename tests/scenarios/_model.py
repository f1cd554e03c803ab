"""The model of most scenarios: one linear layer, which SGD trains."""

import _scenario as scenario
import torch


def mean_square(output):
    return output.pow(2).mean()


class Module(scenario.pl.LightningModule):
    """A module that SGD trains."""

    lr = 0.1

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


class Linear(Module):
    """Subclasses may change the attributes. ``weight`` is the initial weight, with a bias of 0; random if ``None``."""

    features, bias, weight = 2, True, None
    loss = staticmethod(torch.sum)

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(self.features, 1, bias=self.bias)
        if self.weight is not None:
            torch.nn.init.constant_(self.layer.weight, self.weight)
            if self.bias:
                torch.nn.init.zeros_(self.layer.bias)

    def training_step(self, batch, batch_idx):
        return self.loss(self.layer(batch[0] if isinstance(batch, list) else batch))
