"""RichProgressBar, and a training that is resumed from a checkpoint within an epoch. Cases: ``resumed``, ``off`` (the
same, with refresh_rate=0), ``epoch`` (resumed between two epochs), ``begun`` (not resumed at all)."""

from _expect import bug, same

SECOND_EPOCH = [["Epoch 1/1 ", 4, batch] for batch in (1, 2, 3, 4)]
SHOWN = {"resumed": [["Epoch 0/1 ", 4, 1], ["Epoch 0/1 ", 4, 2], *SECOND_EPOCH], "epoch": SECOND_EPOCH}

EXPECT = [
    *[
        bug(
            case,
            stock={"error": "AssertionError", "seen": [], "steps": 3 if case == "resumed" else 5},
            patched={"error": None, "seen": shown, "steps": 8},
        )
        for case, shown in SHOWN.items()
    ],
    same("off", "run without a bar is unchanged", {"error": None, "seen": [], "steps": 8}),
    same(
        "begun",
        "run from the start is unchanged",
        lambda seen: (seen["error"], seen["steps"], len(seen["seen"])) == (None, 8, 8),
    ),
]

import contextlib
import io

from tests.support import with_rich  # noqa: F401  # isort: skip

import _scenario as scenario
from rich.console import Console

clear_live = Console.clear_live


def clear_live_if_there_is_one(self):
    """As in rich below 14.1; otherwise progress bars of these releases do not start (PR 21016)."""
    with contextlib.suppress(IndexError):
        clear_live(self)


class Watch(scenario.pl.Callback):
    """Record the bar's content at the end of each batch."""

    def __init__(self):
        self.seen = []

    def on_train_batch_end(self, trainer, *_):
        bar = trainer.progress_bar_callback
        if bar.train_progress_bar_id is not None:
            task = bar.train_progress_bar
            self.seen.append([task.description, task.total, task.completed])


def fit(**options):
    bar = scenario.pl.callbacks.RichProgressBar(
        refresh_rate=0 if scenario.CASE == "off" else 1, console_kwargs={"file": io.StringIO()}
    )
    watch = Watch()
    saved = scenario.pl.callbacks.ModelCheckpoint(
        "checkpoints", "{step}", save_top_k=-1, every_n_train_steps=2, save_on_train_epoch_end=False
    )
    trainer = scenario.trainer(
        max_epochs=2,
        limit_train_batches=4,
        limit_val_batches=0,
        enable_progress_bar=True,
        callbacks=[bar, watch, saved],
    )
    try:
        trainer.fit(scenario.BoringModel(), **options)
        return None, watch.seen, trainer.global_step
    except AssertionError:
        return "AssertionError", watch.seen, trainer.global_step


if __name__ == "__main__":
    Console.clear_live = clear_live_if_there_is_one
    error, seen, steps = fit()
    if scenario.CASE != "begun":
        step = 4 if scenario.CASE == "epoch" else 2
        error, seen, steps = fit(ckpt_path=f"checkpoints/step={step}.ckpt")
    scenario.observe(error=error, seen=seen, steps=steps)
