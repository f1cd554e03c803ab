"""A training with a stateful DataLoader is resumed from a checkpoint in the middle of an epoch. Cases: ``estimated``
(configure_optimizers reads ``estimated_stepping_batches``), ``not-estimated``, ``whole`` (the training is not
interrupted). With ``fresh``, nothing is resumed, and loads of states are counted."""

from _expect import bug, fixed, same

EXPECT = [
    bug(
        "estimated",
        stock=lambda seen: seen["restored"] == [] and seen["seen"][0] == 1,
        patched=lambda seen: len(seen["restored"]) == 1 and seen["seen"][0] > 1,
        like="not-estimated",
        since="2.2.0",
    ),
    same(["not-estimated", "fresh"], "correct training is unchanged"),
    # The checkpoint's state, of batch 2, replaces it.
    fixed(
        "estimated",
        "manually loaded state is replaced",
        stock={"restored": [4], "seen": [5, 6, 1, 2]},
        patched={"restored": [4, 2], "seen": [3, 4, 5, 6]},
        like="not-estimated",
        program="stateful_loader_state_by_hand",
    ),
    same("estimated", "release without loader states is unchanged", on="2.1.4"),
]

from pathlib import Path

import _scenario as scenario
import torch
from _model import Linear

OUT = Path()


class Loader:
    """A loader of six batches with a state."""

    def __init__(self):
        self.next, self.restored = 0, []

    def __len__(self):
        return 6

    def __iter__(self):
        while self.next < 6:
            self.next += 1
            yield torch.tensor([float(self.next)])
        self.next = 0

    def state_dict(self):
        return {"next": self.next}

    def load_state_dict(self, state):
        self.restored.append(state["next"])
        self.next = state["next"]


class Model(Linear):
    features = 1

    def __init__(self):
        super().__init__()
        self.seen = []

    def training_step(self, batch, batch_idx):
        self.seen.append(int(batch))
        return self.layer(batch).sum()

    def configure_optimizers(self):
        if scenario.CASE == "estimated":
            self.estimated = self.trainer.estimated_stepping_batches
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(steps, **options):
    model, loader = Model(), Loader()
    saving = scenario.pl.callbacks.ModelCheckpoint(OUT / "checkpoints", filename="{step}", every_n_train_steps=2)
    trainer = scenario.trainer(max_epochs=9, max_steps=steps, callbacks=saving)
    trainer.fit(model, loader, **options)
    return model.seen, loader.restored


if __name__ == "__main__":
    torch.manual_seed(1)
    if scenario.CASE == "fresh":
        loop = scenario.pytorch("loops.fit_loop")._FitLoop
        load, loads = loop._load_combined_loader_states, []

        def counted(self):
            loads.append(self.epoch_progress.current.ready)
            load(self)

        loop._load_combined_loader_states = counted
        seen, restored = fit(8)
        scenario.observe(loads=loads)
    else:
        fit(2)
        seen, restored = fit(6, ckpt_path=OUT / "checkpoints" / "step=2.ckpt")
    scenario.observe(seen=seen, restored=restored)
