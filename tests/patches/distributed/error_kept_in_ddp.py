"""Under DDP an error whose argument is not a string is replaced by another one."""

from _expect import bug, same, whole_run

EXPECT = [
    bug(
        stock=whole_run(
            lambda result: "TypeError: expected string or bytes-like object" in result.observations[0]["error"]
        ),
        patched={"error": "KeyError: 3"},
    ),
    same("text", "error with a message is unchanged", {"error": "ValueError: a text"}),
]

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
