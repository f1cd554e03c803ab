"""The Trainer loads a checkpoint before it calls configure_model. Cases: ``fit``, ``test`` (with a new model),
``fresh`` (configure_model makes its layer anew each time), ``early`` (__init__ makes the layer), ``other`` (a
checkpoint of another width, which fails either way)."""

from _expect import bug, patched, same, same_calls


def _is_refused(seen):
    return "Unexpected key(s) in state_dict" in (seen["error"] or "")


EXPECT = [
    bug(
        ["fit", "test", "fresh"],
        stock=_is_refused,
        patched=lambda seen: seen["error"] is None and seen["same"] and (seen["seen"] == 1),
        since="2.1.0",
        compare=("error", "same", "steps", "seen"),
    ),
    same(
        "early",
        "loadable checkpoint is loaded as on stock",
        lambda seen: seen["same"] and seen["calls"] == ["on_load_checkpoint", "configure_model"],
        alone=True,
    ),
    same("other", "mismatched checkpoint raises the same error", _is_refused, compare="error", alone=True),
    patched(
        "fresh",
        "model that recreates its layer is configured once",
        lambda seen: seen["same"] and seen["calls"].count("configure_model") == 1,
        alone=True,
    ),
    same_calls("resumed: properties", "model without configure_model sees no new calls"),
]

import _scenario as scenario
import torch

CASE = scenario.CASE


class Model(scenario.BoringModel):
    calls = []

    def __init__(self, width=2):
        super().__init__()
        self.width = width
        self.head = None
        if CASE == "early":
            self.make_head()

    def make_head(self):
        self.head = torch.nn.Linear(2, self.width)

    def configure_model(self):
        self.calls.append("configure_model")
        if self.head is None or CASE == "fresh":
            self.make_head()

    def on_load_checkpoint(self, checkpoint):
        self.calls.append("on_load_checkpoint")
        checkpoint["seen"] = checkpoint.get("seen", 0) + 1
        self.seen = checkpoint["seen"]

    def on_fit_start(self):
        self.started_with = self.head.weight.detach().clone()

    on_test_start = on_fit_start

    def forward(self, x):
        return self.head(super().forward(x))


def trainer(steps=1):
    return scenario.trainer(max_steps=steps, limit_val_batches=0, limit_test_batches=1)


if __name__ == "__main__":
    first = Model()
    began = trainer()
    began.fit(first)
    path = "saved.ckpt"
    began.save_checkpoint(path)
    del Model.calls[:]

    model = Model(width=3 if CASE == "other" else 2)
    second = trainer(steps=2)
    error = None
    try:
        if CASE == "test":
            second.test(model, ckpt_path=path, verbose=False)
        else:
            second.fit(model, ckpt_path=path)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    started = getattr(model, "started_with", None)
    scenario.observe(
        error=error,
        steps=second.global_step,
        same=None
        if started is None
        else started.shape == first.head.weight.shape and torch.equal(started, first.head.weight),
        seen=getattr(model, "seen", None),
        calls=Model.calls,
    )
