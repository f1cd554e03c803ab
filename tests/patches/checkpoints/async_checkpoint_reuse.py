"""AsyncCheckpointIO in a Trainer that runs more than once. Cases: ``fit`` (fit twice), ``validate`` (validate, then
fit)."""

from _expect import bug, fixed, same_calls

ERROR = "RuntimeError: cannot schedule new futures after shutdown"

EXPECT = [
    bug(
        "fit",
        stock=ERROR,
        patched={"files": ["epoch=0.ckpt", "epoch=1.ckpt"]},
    ),
    fixed("validate", "second validation saves", stock={"error": ERROR}),
    same_calls("own_executor", "custom executor is kept", on="2.5.2"),
]

import os

import _scenario as scenario
import torch
from _model import Linear, mean_square
from torch.utils.data import DataLoader, TensorDataset


class Model(Linear):
    loss = staticmethod(mean_square)

    def validation_step(self, batch, batch_idx):
        self.layer(batch[0])


if __name__ == "__main__":
    scenario.pl.seed_everything(3)
    loader = DataLoader(TensorDataset(torch.arange(16.0).reshape(8, 2) / 16), batch_size=4)
    model = Model()
    checkpoint = scenario.pl.callbacks.ModelCheckpoint(dirpath=os.getcwd(), filename="{epoch}", save_top_k=-1)
    plugin = scenario.pytorch("plugins").AsyncCheckpointIO()
    trainer = scenario.trainer(max_epochs=1, callbacks=[checkpoint], plugins=[plugin])
    with scenario.observing_errors():
        if scenario.CASE == "validate":
            trainer.validate(model, loader, verbose=False)
        else:
            trainer.fit(model, loader)
            trainer.fit_loop.max_epochs = 2
        trainer.fit(model, loader)
    last = torch.load(checkpoint.best_model_path, weights_only=False)
    scenario.observe(
        files=sorted(name for name in os.listdir(checkpoint.dirpath) if name.endswith(".ckpt")),
        last=last["state_dict"]["layer.weight"],
        weight=model.layer.weight,
    )
