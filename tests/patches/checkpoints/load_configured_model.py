"""load_from_checkpoint does not call configure_model. Cases: ``hook`` (on_load_checkpoint needs the layer), ``early``
(__init__ creates it), ``lax`` (strict=False), ``other`` (another width, which fails either way), ``odd`` (the
checkpoint has an object that can't be copied)."""

from _expect import bug, patched, same

EXPECT = [
    bug(
        stock=lambda seen: "Unexpected key(s) in state_dict" in (seen["error"] or ""),
        patched=lambda seen: seen["error"] is None and seen["same"],
        since="2.1.0",
        compare=("error", "same", "bias"),
    ),
    bug(
        "hook",
        stock=lambda seen: "object has no attribute 'head'" in (seen["error"] or ""),
        patched=lambda seen: seen["error"] is None and seen["same"],
        since="2.1.0",
        compare=("error", "same", "bias"),
    ),
    same(["early", "lax", "odd"], "loadable checkpoint is loaded as on stock", {"error": None}),
    same(
        "other",
        "error is unchanged if configure_model makes no difference",
        lambda seen: "Unexpected key(s) in state_dict" in seen["error"],
        compare="error",
    ),
    patched("other", "model configures itself if configure_model makes no difference", {"own": True}),
]

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"

import _scenario as scenario
import torch

CASE = scenario.CASE


class Odd:
    def __copy__(self):
        raise RuntimeError("not to be copied")


class Model(scenario.BoringModel):
    calls = []

    def __init__(self, width=2):
        super().__init__()
        self.save_hyperparameters()
        if CASE in ("early", "odd"):
            self.configure_model()

    def configure_model(self):
        self.calls.append("configure_model")
        if not hasattr(self, "head"):
            self.head = torch.nn.Linear(2, self.hparams.width)

    def on_save_checkpoint(self, checkpoint):
        if CASE == "odd":
            checkpoint["odd"] = Odd()

    def on_load_checkpoint(self, checkpoint):
        self.calls.append("on_load_checkpoint")
        if CASE == "hook":
            checkpoint["state_dict"]["head.bias"] = torch.ones(self.head.out_features)

    def forward(self, x):
        return self.head(super().forward(x))


if __name__ == "__main__":
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0)
    model = Model()
    trainer.fit(model)
    path = "saved.ckpt"
    trainer.save_checkpoint(path)
    del Model.calls[:]
    loaded, error = None, None
    try:
        loaded = Model.load_from_checkpoint(path, strict=CASE != "lax", **({"width": 3} if CASE == "other" else {}))
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    head = getattr(loaded, "head", None)
    scenario.observe(
        error=error,
        same=None if head is None else torch.equal(head.weight, model.head.weight),
        bias=head and head.bias,
        calls=Model.calls,
        own="on_load_checkpoint" in vars(Model) and Model.on_load_checkpoint.__code__.co_filename == __file__,
    )
