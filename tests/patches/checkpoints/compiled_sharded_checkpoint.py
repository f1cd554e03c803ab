"""ModelParallelStrategy saves a model with a compiled part in one file. Case: ``plain``, not compiled."""

from _expect import bug, same

EXPECT = [
    bug(
        stock="KeyError: 'layer.weight'",
        patched=lambda seen: seen["groups"] == [[0, 1]] and len(seen["momentum"]) == 2,
        since="2.3.0",
        simulated_cuda=True,
    ),
    same("plain", "uncompiled model is saved as on stock", simulated_cuda=True),
]

import tempfile
from pathlib import Path

import _scenario as scenario
import torch
from torch.distributed._composable.fsdp import fully_shard


class Model(scenario.BoringModel):
    def configure_model(self):
        fully_shard(self.layer, mesh=self.device_mesh["data_parallel"])
        if scenario.CASE != "plain":
            self.layer = torch.compile(self.layer, backend="eager")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    strategy = scenario.pl.strategies.ModelParallelStrategy(save_distributed_checkpoint=False)
    trainer = scenario.trainer(accelerator="gpu", devices=1, strategy=strategy, max_steps=2, limit_val_batches=0)
    trainer.fit(Model())
    with tempfile.TemporaryDirectory() as folder:
        trainer.save_checkpoint(Path(folder, "saved.ckpt"))
        saved = torch.load(Path(folder, "saved.ckpt"), weights_only=False)
    (optimizer,) = saved["optimizer_states"]
    scenario.observe(
        groups=[group["params"] for group in optimizer["param_groups"]],
        momentum={name: state["momentum_buffer"] for name, state in optimizer["state"].items()},
        weights=saved["state_dict"],
    )
