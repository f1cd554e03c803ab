"""trainer.ckpt_path when training starts, after a search by a callback. Case: ``none`` without a search."""

from _expect import bug

EXPECT = [bug(stock={"has_path": True}, patched={"has_path": False}, like="none")]

import _scenario as scenario


class Model(scenario.BoringModel):
    lr = 0.1

    def on_train_start(self):
        self.has_path = self.trainer.ckpt_path is not None


if __name__ == "__main__":
    model = Model()
    finder = scenario.pytorch("callbacks").LearningRateFinder(num_training_steps=5)
    callbacks = [] if scenario.CASE == "none" else [finder]
    scenario.trainer(max_epochs=1, limit_train_batches=8, limit_val_batches=0, callbacks=callbacks).fit(model)
    scenario.observe(has_path=model.has_path)
