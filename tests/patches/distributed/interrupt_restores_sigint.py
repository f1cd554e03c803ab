"""Ctrl+C in setup(), or in a learning rate search, and the handler of SIGINT afterwards.

Cases: ``search``, ``step`` for Ctrl+C in training, ``by-hand`` for a program that sets the handler, ``ignored`` for one
that ignores SIGINT before the run."""

from _expect import bug, same

EXPECT = [
    *(bug(case, stock={"handler": "1"}, patched={"handler": "default"}, like="step") for case in ("", "search")),
    same("by-hand", "a program that sets the handler after the exit", {"handler": "default"}),
    same("ignored", "a program that ignores SIGINT", {"handler": "1"}),
]

import contextlib
import signal

import _scenario as scenario

CASE = scenario.CASE


class Model(scenario.BoringModel):
    lr = 0.1

    def setup(self, stage):
        if CASE in ("", "by-hand", "ignored"):
            raise KeyboardInterrupt

    def training_step(self, batch, batch_idx):
        raise KeyboardInterrupt


if __name__ == "__main__":
    if CASE == "ignored":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    trainer = scenario.trainer(max_steps=1, limit_val_batches=0)
    with contextlib.suppress(SystemExit, KeyboardInterrupt, AttributeError):
        scenario.tuner(trainer).lr_find(Model()) if CASE == "search" else trainer.fit(Model())
    if CASE == "by-hand":
        signal.signal(signal.SIGINT, signal.default_int_handler)
    handler = signal.getsignal(signal.SIGINT)
    scenario.observe(handler="default" if handler is signal.default_int_handler else str(int(handler)))
