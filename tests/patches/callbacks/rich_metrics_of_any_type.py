"""With RichProgressBar a metric that is not a number ends the training. Cases: ``none``, ``list``, ``dict``,
``tensor``; ``number`` and ``text``, which the bar can write."""

from _expect import bug, fixed, same

EXPECT = [
    *[
        bug(
            case,
            stock=f"TypeError: unsupported format string passed to {kind}.__format__",
            patched={"steps": 2, "shown": [shown]},
        )
        for case, kind, shown in (
            ("none", "NoneType", "None"),
            ("list", "list", "[1, 2]"),
            ("dict", "dict", "{'a': 1}"),
        )
    ],
    same(
        ["number", "text"],
        "numbers and texts are displayed as on stock",
        lambda seen: seen["shown"] in (["0.123"], ["well"]),
        alone=True,
        on=("2.1.0", "2.5.6"),
    ),
    fixed(
        "tensor",
        "tensor with several values does not end the training",
        stock="unsupported format string passed to Tensor.__format__",
        patched={"steps": 2},
        alone=True,
    ),
]

import io

from tests.support import with_rich  # noqa: F401  # isort: skip

import _scenario as scenario
import rich.console
import torch

clear_live = rich.console.Console.clear_live
# As in older versions of rich, which don't need rich-progress-bar.
rich.console.Console.clear_live = lambda self: clear_live(self) if getattr(self, "_live_stack", True) else None

METRICS = {
    "none": None,
    "list": [1, 2],
    "dict": {"a": 1},
    "tensor": torch.tensor([1.0, 2.0]),
    "number": 0.12345,
    "text": "well",
}


class Bar(scenario.pl.callbacks.RichProgressBar):
    def get_metrics(self, trainer, model):
        return {"mine": METRICS[scenario.CASE]}


if __name__ == "__main__":
    screen = io.StringIO()
    bar = Bar(console_kwargs={"file": screen, "force_terminal": True, "width": 200})
    trainer = scenario.trainer(max_steps=2, limit_val_batches=0, enable_progress_bar=True, callbacks=bar)
    with scenario.observing_errors():
        trainer.fit(scenario.BoringModel())
    shown = [text for text in ("None", "[1, 2]", "{'a': 1}", "0.123", "well") if f"mine: {text}" in screen.getvalue()]
    scenario.observe(steps=trainer.global_step, shown=shown)
