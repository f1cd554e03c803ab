"""Issue 18089: a model with manual optimization clips its gradients in 16-mixed precision.

Cases: none, ``unscaled`` (it unscales them by hand before), ``automatic`` (Trainer(gradient_clip_val=...)).
"""

import _scenario as scenario
import torch

CASE = scenario.CASE
plugins = scenario.pytorch("plugins.precision.amp")
SCALER = torch.amp.GradScaler("cpu", init_scale=1024.0)
CLIPPED = {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "norm"}


class Model(scenario.pytorch("demos.boring_classes").BoringModel):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = CASE == "automatic"

    def training_step(self, batch, batch_idx):
        loss = self(batch).square().mean()
        if self.automatic_optimization:
            return loss
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(loss)
        if CASE == "unscaled":
            SCALER.unscale_(optimizer.optimizer)
        self.clip_gradients(optimizer, **CLIPPED)
        SCALER.step(optimizer.optimizer)
        SCALER.update()


if __name__ == "__main__":
    scenario.pytorch().seed_everything(1)
    plugin = getattr(plugins, "MixedPrecision", None) or plugins.MixedPrecisionPlugin
    trainer = scenario.trainer(
        accelerator="cpu",
        limit_train_batches=4,
        limit_val_batches=0,
        max_epochs=1,
        plugins=[plugin("16-mixed", "cpu", scaler=SCALER)],
        **(CLIPPED if CASE == "automatic" else {}),
    )
    model = Model()
    with scenario.observing_warnings():
        trainer.fit(model)
    scenario.observe(weight=model.layer.weight)
