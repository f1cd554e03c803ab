"""With manual optimization, train_time_interval saves nothing."""

from _expect import bug, fixed, same

EXPECT = [
    bug(
        stock={"steps": []},
        patched=lambda seen: seen["steps"] == [1, 2, 3, 4] and seen["weights"][-1] == seen["trained"],
        like="steps",
        compare=("steps", "weights", "trained"),
    ),
    same(["automatic", "steps"], "other intervals save as on stock", {"steps": [1, 2, 3, 4]}, toggle="all"),
    same("hour", "interval that has not passed saves nothing", {"steps": []}, toggle="all"),
    fixed(
        "monitor",
        "scheduler waits for a metric of the validation",
        stock={"steps": []},
        patched={"steps": [2, 3, 4]},
        toggle="all",
    ),
]

from datetime import timedelta
from pathlib import Path

import _scenario as scenario

CASE = scenario.CASE


class Model(scenario.BoringModel):
    automatic_optimization = CASE == "automatic"

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).sum()
        if not self.automatic_optimization:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        self.log("loss", loss)
        if CASE != "monitor":
            self.log("late", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("late", float(self.global_step))


def interval():
    if CASE == "steps":
        return {"every_n_train_steps": 1}
    return {"train_time_interval": timedelta(hours=1) if CASE == "hour" else timedelta(0)}


if __name__ == "__main__":
    scenario.torch.manual_seed(0)
    directory = Path("run")
    monitor = {"monitor": "late"} if CASE == "monitor" else {}
    callback = scenario.pl.callbacks.ModelCheckpoint(
        directory, filename="{step}", save_top_k=-1, **monitor, **interval()
    )
    trainer = scenario.trainer(
        max_epochs=1,
        limit_train_batches=4,
        limit_val_batches=1 if CASE == "monitor" else 0,
        val_check_interval=2 if CASE == "monitor" else 1.0,
        num_sanity_val_steps=0,
        callbacks=callback,
    )
    model = Model()
    with scenario.observing_warnings():
        trainer.fit(model)
    saved = [scenario.torch.load(path, weights_only=False) for path in sorted(directory.glob("*"))]
    weights = [each["state_dict"]["layer.weight"] for each in saved]
    scenario.observe(steps=[each["global_step"] for each in saved], weights=weights, trained=model.layer.weight)
