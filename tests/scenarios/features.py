"""Features that no release has, and workarounds without patches.

Cases: ``validation``, ``drift`` (the number of batches is not a multiple of the accumulated ones), ``dict`` and
``dict-refused``, a call that Lightning refuses.
"""

import _scenario as scenario

CASE, _, REFUSED = scenario.CASE.partition("-")
SEEN = []


class Model(scenario.pytorch("demos.boring_classes").BoringModel):
    def training_step(self, batch, batch_idx):
        metrics = {"a": 1.0, "b": 2.0}
        if CASE == "dict" and REFUSED:
            self.log("train", metrics)
        elif CASE == "dict":
            self.log_dict({f"train/{key}": value for key, value in metrics.items()})
        return super().training_step(batch, batch_idx)

    def on_validation_start(self):
        SEEN.append(self.trainer.global_step)


if __name__ == "__main__":
    if CASE in ("validation", "drift"):
        accumulated, steps = 4, 2
        trainer = scenario.trainer(
            accumulate_grad_batches=accumulated, val_check_interval=steps * accumulated, check_val_every_n_epoch=None,
            limit_train_batches=10 if CASE == "drift" else 8, limit_val_batches=1, num_sanity_val_steps=0, max_steps=8,
        )  # fmt: skip
        trainer.fit(Model())
    else:
        trainer = scenario.trainer(limit_train_batches=2, limit_val_batches=0, max_epochs=1)
        trainer.fit(Model())
    logged = {name: value.item() for name, value in trainer.logged_metrics.items()}
    scenario.observe(seen=SEEN, logged=logged)
