"""A name has a closing tag of rich's markup. Cases: ``closing``, and
tables that rich can print: ``plain``, ``several`` (DataLoaders), ``markup`` (on purpose, and escaped), ``long``,
``renderable`` (a cell of the summary that is no text)."""

from _expect import bug, same

EXPECT = [
    bug("closing", stock="MarkupError", patched={"shown": [True] * 3}, like="plain", compare="shown"),
    same(
        ["plain", "several", "markup", "long", "renderable"],
        "table that rich can print is unchanged",
        on=("2.0.0", "2.6.6"),
    ),
]

import io

from tests.support import with_rich  # noqa: F401  # isort: skip

import _scenario as scenario
import rich
import torch
from rich.markup import escape
from rich.text import Text

CASE = scenario.CASE
METRICS = {
    "closing": ("speed [km/s]", "angle [/m]"),
    "markup": ("[bold green]loss[/bold green]", escape("f1[top5]")),
    "long": ("x" * 70, "loss"),
}.get(CASE, ("loss", "accuracy"))
MODULES = {"closing": "block[/]", "several": "block" * 2}
SCREEN = io.StringIO()


class Summary(scenario.pl.callbacks.RichModelSummary):
    @staticmethod
    def summarize(summary_data, *args, **kwargs):
        if CASE == "renderable":
            summary_data = [(column, [Text(cell) for cell in cells]) for column, cells in summary_data]
        scenario.pl.callbacks.RichModelSummary.summarize(summary_data, *args, **kwargs)


class Model(scenario.boring_model()):
    def __init__(self):
        super().__init__()
        self.add_module(MODULES.get(CASE, "block"), torch.nn.Sequential(torch.nn.Linear(2, 2)))

    def test_step(self, batch, batch_idx, dataloader_idx=0):
        for name in METRICS:
            self.log(name, torch.tensor(1.5))

    def test_dataloader(self):
        loader = super().test_dataloader()
        return [loader, loader, loader] if CASE == "several" else loader


if __name__ == "__main__":
    rich.reconfigure(file=SCREEN)
    model = Model()
    trainer = scenario.trainer(
        accelerator="cpu", max_steps=1, limit_val_batches=0, limit_test_batches=1, callbacks=[Summary(max_depth=2)]
    )
    with scenario.observing_errors():
        trainer.fit(model)
        trainer.test(model)
    screen = SCREEN.getvalue()
    names = (*METRICS, *(f"{name}.0" for name, _ in model.named_children() if name != "layer"))
    scenario.observe(shown=[name in screen for name in names], screen="" if CASE == "closing" else screen)
