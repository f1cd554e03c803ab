"""self.log searches the whole batch for its size, but uses only the first tensor. Cases: ``alike`` (the tensors have
the same size) and ``unlike`` (the last has another); with the suffix ``-said``, the model passes the size; ``none``:
the batch has no tensor."""

from _expect import bug, same

EXPECT = [
    # Not compared: How often a batch is looked at: not at all where the size is said.
    *[
        bug(
            case,
            stock={"looks": 200, "warned": warned},
            patched=lambda seen: seen["looks"] in (0, 4),
            compare=("mean", "warned"),
            like=f"{case}-said",
        )
        for case, warned in (("alike", 0), ("unlike", 2))
    ],
    same(
        "none",
        "batch without tensors is refused as on stock",
        "MisconfigurationException: We could not infer the batch_size",
        on=("2.0.0", "2.6.6"),
    ),
]

import warnings

import _scenario as scenario
import torch

KIND, _, HOW = scenario.CASE.partition("-")


class Graphs:
    """A batch that the Trainer does not change, and that counts reads of its parts."""

    looks = 0

    def __init__(self, nodes):
        last = torch.ones(nodes + (KIND == "unlike"), 32)
        self.parts = ["a name"] if KIND == "none" else ["a name", *[torch.ones(nodes, 32)] * 98, last]

    def __iter__(self):
        for part in self.parts:
            Graphs.looks += 1
            yield part


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        nodes = len(batch.parts[-2]) if KIND != "none" else 1
        self.log("nodes", float(nodes), on_epoch=True, on_step=False, **({"batch_size": nodes} if HOW else {}))
        return self.layer(torch.ones(1, 32)).sum()

    def train_dataloader(self):
        return torch.utils.data.DataLoader([Graphs(2), Graphs(3)], batch_size=None)


if __name__ == "__main__":
    trainer = scenario.trainer(limit_val_batches=0, max_epochs=1)
    with scenario.observing_errors(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.fit(Model())
    warned = sum("ambiguous collection" in str(one.message) for one in caught)
    scenario.observe(mean=trainer.logged_metrics["nodes"].item(), looks=Graphs.looks, warned=warned)
