"""rich takes `[...]` in names for markup, and cuts long names. Cases: ``brackets``, ``closing`` (a closing tag: an
error), ``long``; ``plain``, ``several`` (DataLoaders) and ``words`` (a long name that Lightning's table folds at a
space); each with ``-terminal``, where rich knows the width."""

import io

from tests.support import with_rich  # noqa: F401  # isort: skip

import _scenario as scenario
import rich
import torch

CASE, _, TERMINAL = scenario.CASE.partition("-")
METRICS = {
    "brackets": ("iou[per class]", "[bold]loss"),
    "closing": ("speed [km/s]", "angle [/m]"),
    "long": ("x" * 70, "loss"),
    "words": ("a long name " * 8, "loss"),
}.get(CASE, ("loss", "accuracy"))
MODULES = {"brackets": "block[red]", "long": "block" * 12, "several": "block" * 2}
SCREEN = io.StringIO()


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
    rich.reconfigure(file=SCREEN, **({"force_terminal": True, "width": 90} if TERMINAL else {}))
    model = Model()
    summary = scenario.pl.callbacks.RichModelSummary(max_depth=2)
    trainer = scenario.trainer(
        accelerator="cpu", max_steps=1, limit_val_batches=0, limit_test_batches=1, callbacks=[summary]
    )
    with scenario.observing_errors():
        trainer.fit(model)
        trainer.test(model)
    names = (*METRICS, *(f"{name}.0" for name, _ in model.named_children() if name != "layer"))
    screen = SCREEN.getvalue()
    if TERMINAL:  # without the frames and the codes of styles
        shown = [name.count("x") == screen.count("x") for name in names[:1]]
    else:
        shown = [name in screen for name in names]
    scenario.observe(
        shown=shown, screen=screen if CASE in ("plain", "several", "words") else "", width=rich.get_console()._width
    )
