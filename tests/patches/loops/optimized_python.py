"""A training under `python -O` ends in its first step."""

from _expect import bug

EXPECT = [bug(stock="UnboundLocalError: ", patched={"steps": 6, "predictions": 64}, fresh=True)]

import os
import sys

if not sys.flags.optimize:
    os.execv(sys.executable, [sys.executable, "-O", *sys.argv])

import _scenario as scenario

if __name__ == "__main__":
    trainer = scenario.trainer(max_epochs=2, limit_train_batches=3, limit_val_batches=2)
    model = scenario.BoringModel()
    with scenario.observing_errors():
        trainer.fit(model)
    scenario.observe(steps=trainer.global_step, predictions=len(trainer.predict(model)))
