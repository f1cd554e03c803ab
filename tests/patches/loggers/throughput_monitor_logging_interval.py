"""ThroughputMonitor refuses the Trainer's default logging interval. Cases: ``default`` (log_every_n_steps=50, no
accumulation), ``accumulated`` (every 4 steps, two batches each), ``taken`` (every step, which 2.2.0 accepts)."""

from _expect import bug, same

REFUSED = "but these are not divisible and thus will not log anything."

EXPECT = [
    bug("default", stock=REFUSED, patched={"steps": 128}, since="2.2.0"),
    bug("accumulated", stock=REFUSED, patched={"steps": 64}, since="2.2.0"),
    same("taken", "accepted interval is logged as on stock", lambda seen: seen["logged"], alone=True, on="2.2.0"),
]

import _scenario as scenario

OPTIONS = {
    "default": {},
    "accumulated": {"log_every_n_steps": 4, "accumulate_grad_batches": 2},
    "taken": {"log_every_n_steps": 1, "accumulate_grad_batches": 2},
}


class Logger(scenario.pytorch("loggers.logger").DummyLogger):
    def log_metrics(self, metrics, step=None):
        LOGGED.append([step, *(metrics[name] for name in sorted(metrics) if name.endswith(("/batches", "/samples")))])


LOGGED = []

if __name__ == "__main__":
    monitor = scenario.pl.callbacks.ThroughputMonitor(batch_size_fn=len, window_size=4)
    trainer = scenario.trainer(
        max_epochs=2, limit_val_batches=0, logger=Logger(), callbacks=[monitor], **OPTIONS[scenario.CASE]
    )
    with scenario.observing_errors():
        trainer.fit(scenario.BoringModel())
    scenario.observe(steps=trainer.global_step, logged=LOGGED)
