"""A run that is resumed at the end of epoch 1, with a DistributedSampler and a worker. Cases: ``within`` (it is resumed
within epoch 2), ``no workers`` (the loader has no worker), ``whole`` (it is not interrupted)."""

from _expect import bug, same

# Epoch 2 begins with the items of its order, as in the run that is not interrupted, or with those of epoch 0.
OF_EPOCH_0 = {"begins": "epoch 0"}
OF_EPOCH_2 = {"begins": "epoch 2"}

EXPECT = [
    bug(stock=OF_EPOCH_0, patched=OF_EPOCH_2, like="whole", compare="begins", since="2.5.3"),
    bug("within", stock=OF_EPOCH_0, patched=OF_EPOCH_2, like="whole", compare="begins"),
    same("no workers", "run without workers has one call of set_epoch for each epoch", {"calls": [2]}),
]

import _scenario as scenario
from torch.utils.data import DataLoader, DistributedSampler

PATH = f"{scenario.QUIET['default_root_dir']}/saved.ckpt"


class Sampler(DistributedSampler):
    calls = []

    def set_epoch(self, epoch):
        super().set_epoch(epoch)
        self.calls.append(epoch)


class Model(scenario.BoringModel):
    seen = []

    def training_step(self, batch, batch_idx):
        if self.current_epoch == 2:
            self.seen += batch.tolist()
        return self.layer(self.layer.weight).sum()

    def on_train_batch_end(self, *_):
        if scenario.CASE == "within" and self.global_step == 9 and not self.trainer.ckpt_path:
            self.trainer.save_checkpoint(PATH)

    def train_dataloader(self):
        sampler = Sampler(range(16), num_replicas=2, rank=0, shuffle=True, seed=3)
        return DataLoader(range(16), 2, sampler=sampler, num_workers=int(scenario.CASE != "no workers"))

    def order(self, epoch):
        sampler = DistributedSampler(range(16), num_replicas=2, rank=0, shuffle=True, seed=3)
        sampler.set_epoch(epoch)
        return list(sampler)


def trainer(**options):
    return scenario.trainer(limit_val_batches=0, use_distributed_sampler=False, **options)


if __name__ == "__main__":
    resumed = {}
    if scenario.CASE != "whole":
        first = trainer(max_epochs=3 if scenario.CASE == "within" else 2)
        first.fit(Model())
        if scenario.CASE != "within":
            first.save_checkpoint(PATH)
        resumed = {"ckpt_path": PATH}
    model = Model()
    model.seen.clear()
    Sampler.calls.clear()
    trainer(max_epochs=3).fit(model, **resumed)
    orders = {f"epoch {epoch}": model.order(epoch)[:2] for epoch in (0, 2)}
    scenario.observe(
        begins=next((name for name, order in orders.items() if order == model.seen[:2]), model.seen),
        calls=Sampler.calls,
    )
