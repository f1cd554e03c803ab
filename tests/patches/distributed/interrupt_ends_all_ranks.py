"""After Ctrl+C in one rank, this rank continues after fit, and the other rank waits."""

from _expect import bug

EXPECT = [bug(stock=lambda seen: seen["goes_on"], patched=[{"goes_on": False, "status": 1}, {"goes_on": False}])]

import _scenario as scenario


class Model(scenario.BoringModel):
    def training_step(self, batch, batch_idx):
        if batch_idx == 1 and self.global_rank == 0:
            raise KeyboardInterrupt
        return super().training_step(batch, batch_idx)


if __name__ == "__main__":
    trainer = scenario.trainer(
        devices=2, strategy="ddp", max_steps=4, limit_val_batches=0, use_distributed_sampler=False
    )
    scenario.observe(goes_on=False)
    try:
        trainer.fit(Model())
        scenario.observe(goes_on=True)
    except SystemExit as end:
        scenario.observe(status=end.code)
