"""Validation is off, and val_check_interval is more than the training has batches. Cases: ``off``
(limit_val_batches=0), ``logged`` (the same, with a logging interval that is longer than the epoch), ``on`` (there is
validation, but an epoch never reaches it), ``fits`` (off, and the interval is no more than the batches)."""

import warnings

import _scenario as scenario

if __name__ == "__main__":
    trainer = scenario.trainer(
        max_epochs=2,
        limit_train_batches=4,
        limit_val_batches=1 if scenario.CASE == "on" else 0,
        val_check_interval=4 if scenario.CASE == "fits" else 100,
        logger=scenario.pl.loggers.CSVLogger("logs") if scenario.CASE == "logged" else False,
    )
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            trainer.fit(scenario.BoringModel())
        except ValueError as raised:
            error = str(raised).strip()
    scenario.observe(
        error=error,
        steps=trainer.global_step,
        epochs=trainer.current_epoch,
        interval=trainer.val_check_batch,
        warned=[w.category.__name__ for w in caught if "log_every_n_steps" in str(w.message)],
    )
