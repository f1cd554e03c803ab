"""Manual optimization refuses a mapping that is not a dict."""

from _expect import bug, same

SEEN = {"seen": [[["loss", "width"], 3, False]]}

EXPECT = [
    bug(stock="In manual optimization, `training_step` must either return a Tensor or have no return", patched=SEEN),
    same("dict", "dict is accepted as on stock", SEEN),
]

from collections import UserDict

import _scenario as scenario


class Model(scenario.BoringModel):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.seen = []

    def training_step(self, batch, batch_idx):
        output = dict(super().training_step(batch, batch_idx), width=3)
        self.manual_backward(output["loss"])
        self.optimizers().step()
        return output if scenario.CASE == "dict" else UserDict(output)

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.seen.append([sorted(outputs), outputs["width"], outputs["loss"].requires_grad])


if __name__ == "__main__":
    model = Model()
    with scenario.observing_errors():
        scenario.trainer(max_steps=1, limit_val_batches=0).fit(model)
    scenario.observe(seen=model.seen)
