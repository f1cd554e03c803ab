"""ModelPruning mistakes an attribute with a parameter's name for a parameter."""

from _expect import bug

EXPECT = [bug(stock="'bool' object has no attribute", patched={"zeros": 32})]

import _scenario as scenario
import torch


class Layer(torch.nn.Linear):
    """A custom layer whose ``bias`` is a flag."""

    def __init__(self, *args):
        super().__init__(*args, bias=False)
        del self.bias
        self.bias = False

    def forward(self, batch):
        return batch @ self.weight.T


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.layer = Layer(32, 2)


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    model = Model()
    pruning = scenario.pl.callbacks.ModelPruning("l1_unstructured", amount=0.5)
    trainer = scenario.trainer(max_epochs=1, limit_train_batches=1, limit_val_batches=0)
    trainer.callbacks.append(pruning)
    with scenario.observing_errors():
        trainer.fit(model)
    scenario.observe(zeros=int((model.layer.weight == 0).sum()))
