"""A model with manual optimization clips its gradients in 16-mixed precision. Cases: ``norm`` and ``value`` (the
algorithm); ``two`` (two optimizers, both clipped before either steps); with ``-by-hand`` behind it, the model unscales,
clips and steps by hand; ``automatic`` (Trainer(gradient_clip_val=...)); ``multiplied`` and ``divided`` (the model makes
up for the scale: in the value, or in the gradients)."""

from _expect import bug, same

EXPECT = [
    bug(
        ["norm", "value", "two"],
        stock=lambda seen: not seen["moved"],
        patched=lambda seen: seen["moved"],
        like="{}-by-hand",
        compare=("weights", "moved"),
        needs=("torch.amp:GradScaler",),
    ),
    same(
        ["norm-by-hand", "value-by-hand", "two-by-hand", "automatic"],
        "unscaled gradients are clipped as on stock",
        lambda seen: seen["moved"],
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
    # The patch is opt-in because these programs would not clip with it.
    same(
        ["multiplied", "divided"],
        "program that compensates for the scale trains as on stock by default",
        {"moved": True},
        compare="weights",
        toggle="default",
    ),
]

import _scenario as scenario
import torch

KIND, BY_HAND, _ = scenario.CASE.partition("-by-hand")
plugins = scenario.pytorch("plugins.precision.amp")
# With a scale of 65536 the first gradients overflow, so their step must be skipped. Lightning updates the scaler with
# each optimizer's step, the program by hand once a batch, so the scale is constant with two optimizers.
SCALER = torch.amp.GradScaler("cpu", init_scale=1024.0 if KIND == "two" else 65536.0, growth_interval=20)
CLIPPED = {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "value" if KIND == "value" else "norm"}
STEPS, SCALES = [], []


def counted(ask=SCALER.get_scale):
    SCALES.append(ask())
    return SCALES[-1]


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = KIND == "automatic"
        self.other = torch.nn.Linear(32, 2)

    def training_step(self, batch, batch_idx):
        losses = [layer(batch).square().mean() for layer in (self.layer, self.other)]
        if self.automatic_optimization:
            return sum(losses)
        optimizers = self.optimizers() if KIND == "two" else [self.optimizers()]
        for optimizer, loss in zip(optimizers, losses):
            optimizer.zero_grad()
            self.manual_backward(loss)
            if BY_HAND:
                SCALER.unscale_(optimizer.optimizer)
            factor = SCALER.get_scale()
            gradients = [p.grad for p in self.layer.parameters()]
            if KIND == "multiplied":
                self.clip_gradients(optimizer, CLIPPED["gradient_clip_val"] * factor, "norm")
            elif KIND == "divided":
                torch._foreach_div_(gradients, factor)
                self.clip_gradients(optimizer, **CLIPPED)
                torch._foreach_mul_(gradients, factor)
            else:
                self.clip_gradients(optimizer, **CLIPPED)
        for optimizer in optimizers:
            if BY_HAND:
                SCALER.step(optimizer.optimizer)
            else:
                optimizer.step()
        if BY_HAND:
            SCALER.update()
        return None

    def on_train_batch_end(self, *_):
        STEPS.append([float(f"{layer.weight.sum().item():.5g}") for layer in (self.layer, self.other)])

    def configure_optimizers(self):
        layers = (self.layer, self.other) if KIND == "two" else (self.layer,)
        made = [torch.optim.SGD(layer.parameters(), lr=1.0) for layer in layers]
        return made if KIND == "two" else made[0]


if __name__ == "__main__":
    scenario.pl.seed_everything(1)
    plugin = getattr(plugins, "MixedPrecision", None) or plugins.MixedPrecisionPlugin
    trainer = scenario.trainer(
        limit_train_batches=4,
        limit_val_batches=0,
        max_epochs=1,
        plugins=[plugin("16-mixed", "cpu", scaler=SCALER)],
        **(CLIPPED if KIND == "automatic" else {}),
    )
    SCALER.get_scale = counted
    model = Model()
    before = [layer.weight.sum().item() for layer in (model.layer, model.other)]
    with scenario.observing_warnings():
        trainer.fit(model)
    scenario.observe(asked=len(SCALES), weights=STEPS, moved=abs(STEPS[-1][0] - before[0]) > 1e-3)
