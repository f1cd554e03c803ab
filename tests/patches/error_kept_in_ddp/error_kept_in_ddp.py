"""Under DDP an error whose argument is not a string is replaced by another one."""

import _scenario as scenario


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        raise {"key": KeyError(3), "text": ValueError("a text")}[scenario.CASE or "key"]


if __name__ == "__main__":
    trainer = scenario.trainer(strategy="ddp", devices=1, max_steps=1, limit_val_batches=0)
    try:
        trainer.fit(Model())
    except Exception as error:
        scenario.observe(error=f"{type(error).__name__}: {error}")
