"""FSDP saves a sharded checkpoint of weights only. Case: ``whole``, with the states of the optimizers."""

from _expect import bug, same

EXPECT = [
    bug(
        stock="KeyError: 'optimizer_states'",
        patched=lambda seen: len(seen["model"]) == 2 and (not seen["optimizers"]) and ("loops" in seen["rest"]),
        since="2.1.0",
        simulated_cuda=True,
        one_card=True,
    ),
    same("whole", "full checkpoint is unchanged", lambda seen: seen["optimizers"], simulated_cuda=True),
]

import tempfile
from pathlib import Path

import _scenario as scenario
import torch


class Model(scenario.BoringModel):
    def configure_optimizers(self):
        return torch.optim.SGD(self.trainer.model.parameters(), lr=0.1, momentum=0.9)


if __name__ == "__main__":
    strategy = scenario.pl.strategies.FSDPStrategy(state_dict_type="sharded")
    trainer = scenario.trainer(accelerator="gpu", devices=1, strategy=strategy, max_steps=1, limit_val_batches=0)
    trainer.fit(Model())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "saved.ckpt")
        trainer.save_checkpoint(path, weights_only=scenario.CASE != "whole")
        saved = torch.distributed.checkpoint.FileSystemReader(path).read_metadata().state_dict_metadata
        rest = torch.load(path / "meta.pt", weights_only=False)
        scenario.observe(
            files=sorted(file.name for file in path.iterdir()),
            model=sorted(name for name in saved if name.startswith("model")),
            optimizers=sum(name.startswith("optimizer") for name in saved) > 0,
            rest=sorted(rest),
        )
