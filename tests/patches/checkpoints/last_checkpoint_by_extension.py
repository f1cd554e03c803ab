"""ckpt_path="last" takes any file with "last" in its name."""

from _expect import bug, same

EXPECT = [
    bug(stock="UnpicklingError", patched={"steps": 3}),
    same("byhand", "renamed checkpoint is found as on stock", {"steps": 3}),
]

import os
from pathlib import Path

import _scenario as scenario


def trainer(directory, steps):
    callback = scenario.pl.callbacks.ModelCheckpoint(str(directory), save_last=True)
    made = scenario.trainer(max_steps=steps, limit_val_batches=0, enable_checkpointing=True)
    made.callbacks.append(callback)
    return made


if __name__ == "__main__":
    directory = Path("run")
    model = scenario.BoringModel()
    trainer(directory, 2).fit(model)
    if scenario.CASE == "byhand":
        (directory / "last.ckpt").rename(directory / "last.pt")
    else:
        (directory / "last.log").write_text("what was printed last")
        os.utime(directory / "last.log", (2**32, 2**32))
    again = trainer(directory, 3)
    with scenario.observing_errors():
        again.fit(model, ckpt_path="last")
    scenario.observe(steps=again.global_step)
