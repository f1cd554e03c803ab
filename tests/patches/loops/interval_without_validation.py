"""Validation is off, and val_check_interval is more than the training has batches. Cases: ``off``
(limit_val_batches=0), ``logged`` (the same, with a logging interval that is longer than the epoch), ``on`` (there is
validation, but an epoch never reaches it), ``fits`` (off, and the interval is no more than the batches)."""

from _expect import bug, same

OLD = ["2.0.0", "2.2.5", "2.6.1"]

EXPECT = [
    *[
        bug(
            case,
            stock=lambda seen: (seen["error"] or "").startswith(
                "`val_check_interval` (100) must be less than or equal"
            ),
            patched={"steps": 8, "warned": warned},
        )
        for case, warned in (("off", []), ("logged", ["PossibleUserWarning"]))
    ],
    same("fits", "run with shorter interval is unchanged", {"error": None}, on=OLD),
    same("on", "run with validation is refused as on stock", lambda seen: seen["error"] is not None, on=OLD),
]

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
