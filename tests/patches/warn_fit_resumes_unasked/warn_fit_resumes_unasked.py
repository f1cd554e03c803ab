"""With OnExceptionCheckpoint, a fit without ckpt_path continues an earlier run. Cases: none; ``first`` (there is no
earlier run); ``last`` (the program passes ckpt_path); ``none`` (no such callback)."""

import _scenario as scenario

callbacks = scenario.pytorch("callbacks")


class Model(scenario.BoringModel):
    breaks, first = False, None

    def on_train_start(self):
        self.first = self.global_step

    def training_step(self, batch, batch_idx):
        if self.breaks and batch_idx == 2:
            raise ValueError("the step broke")
        return super().training_step(batch, batch_idx)


def fit(breaks, **options):
    model = Model()
    model.breaks = breaks
    saves = [] if scenario.CASE == "none" else [callbacks.OnExceptionCheckpoint("saved")]
    scenario.trainer(max_epochs=1, limit_train_batches=4, limit_val_batches=0, callbacks=saves).fit(model, **options)
    return model.first


if __name__ == "__main__":
    if scenario.CASE != "first":
        try:
            fit(True)
        except ValueError:
            pass
    with scenario.observing_warnings():
        first = fit(False, **({"ckpt_path": "last"} if scenario.CASE == "last" else {}))
    scenario.observe(first=first)
