"""TQDMProgressBar, and a training that is resumed within an epoch. Cases: ``begun`` (not resumed), ``epoch`` (resumed
between two epochs), ``own`` (a loop without a Trainer calls the hook)."""

from _expect import bug, same

SECOND = [["Epoch 1: ", 4]] * 4

EXPECT = [
    bug(
        stock={"shown": [["Training", None]] * 2 + SECOND},
        patched={"shown": [["Epoch 0: ", 4]] * 2 + SECOND},
        like="begun",
        compare_like=lambda ranks: [{"shown": ranks[0]["shown"][2:]}],
    ),
    bug(
        "epoch",
        stock={"shown": [["Training", None]] * 4},
        patched={"shown": SECOND},
        like="begun",
        compare_like=lambda ranks: [{"shown": ranks[0]["shown"][4:]}],
    ),
    same("own", "program's own loop is unchanged", {"shown": [None]}),
    same("begun", "run from the start is unchanged", lambda seen: len(seen["shown"]) == 8),
]

import _scenario as scenario


class Watch(scenario.pl.Callback):
    def __init__(self):
        self.shown = []

    def on_train_batch_end(self, trainer, *_):
        bar = trainer.progress_bar_callback.train_progress_bar
        self.shown.append([bar.desc, bar.total])


def fit(path=None):
    watch = Watch()
    saved = scenario.pl.callbacks.ModelCheckpoint(
        "checkpoints", "{step}", save_top_k=-1, every_n_train_steps=2, save_on_train_epoch_end=False
    )
    trainer = scenario.trainer(
        max_epochs=2,
        limit_train_batches=4,
        limit_val_batches=0,
        enable_progress_bar=True,
        callbacks=[scenario.pl.callbacks.TQDMProgressBar(), watch, saved],
    )
    trainer.fit(scenario.BoringModel(), ckpt_path=path)
    return watch.shown


if __name__ == "__main__":
    shown = fit()
    if scenario.CASE == "own":
        bar = scenario.pl.callbacks.TQDMProgressBar()
        bar.on_train_start()
        shown = [bar.train_progress_bar.total]
    elif scenario.CASE != "begun":
        shown = fit(f"checkpoints/step={4 if scenario.CASE == 'epoch' else 2}.ckpt")
    scenario.observe(shown=shown)
