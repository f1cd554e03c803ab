"""Issue 21447: two ranks, and a sampler of the program's own, of torch's (``torch``) or that divides (``divides``)."""

import _scenario as scenario
import torch
from torch.utils.data import DataLoader, Sampler, SubsetRandomSampler


class Curriculum(Sampler):
    def __iter__(self):
        return iter(range(16))

    def __len__(self):
        return 16


class Model(scenario.pytorch("demos.boring_classes").BoringModel):
    seen = []

    def training_step(self, batch, batch_idx):
        self.seen.extend(int(value) for value in batch[:, 0])
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    sampler = SubsetRandomSampler(range(16)) if scenario.CASE == "torch" else Curriculum()
    data = torch.arange(16.0)[:, None].repeat(1, 32)
    trainer = scenario.trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        limit_val_batches=0,
        use_distributed_sampler=scenario.CASE != "divides",
    )
    with scenario.observing_warnings():
        trainer.fit(Model(), DataLoader(data, batch_size=4, sampler=sampler))
    scenario.observe(in_order=Model.seen == sorted(Model.seen))
