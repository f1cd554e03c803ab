"""A hyperparameter for which YAML raises a ValueError. Cases: ``dtype`` (torch.float32), ``metric`` (a torchmetrics
metric), ``both`` (a dtype, and an object that YAML refuses with a TypeError), ``TypeError`` (that object alone),
``plain`` (values that YAML can hold)."""

from _expect import bug, fixed, same

ERROR = "ValueError: dictionary update sequence element #0 has length 1"
KINDS = {"dtype": {"special": "dtype"}, "metric": {"special": "MeanMetric"}}

EXPECT = [
    *[
        bug(
            case,
            stock=lambda seen: (seen["error"] or "").startswith(ERROR),
            patched={
                "error": None,
                "steps": 2,
                "skipped": list(kind),
                "written": {"width": 2, "special": None, "other": None, **kind},
            },
        )
        for case, kind in KINDS.items()
    ],
    same(["plain", "TypeError"], "serializable hparams are written as on stock", {"error": None}),
    fixed(
        "both",
        "two unserializable hparams are both dropped",
        stock=lambda seen: (seen["error"] or "").startswith(ERROR),
    ),
]

import os
import warnings

import _scenario as scenario
import torch
import yaml


class Refusing:
    """An object that can be neither dumped nor copied, except by Lightning."""

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError("cannot pickle this")


class Model(scenario.BoringModel):
    def __init__(self, width=2, special=None, other=None):
        super().__init__()
        self.save_hyperparameters()


def arguments():
    if scenario.CASE == "metric":
        import torchmetrics

        return {"special": torchmetrics.MeanMetric()}
    return {
        "dtype": {"special": torch.float32},
        "both": {"special": torch.float32, "other": Refusing()},
        "TypeError": {"other": Refusing()},
        "plain": {"special": [1, "two"]},
    }[scenario.CASE]


if __name__ == "__main__":
    logger = scenario.pl.loggers.CSVLogger(os.getcwd())
    trainer = scenario.trainer(max_steps=2, limit_val_batches=0, logger=logger)
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            trainer.fit(Model(**arguments()))
        except (TypeError, ValueError) as raised:
            error = f"{type(raised).__name__}: {str(raised)[:60]}"
    path = os.path.join(logger.log_dir, "hparams.yaml")
    written = None
    if os.path.exists(path):
        with open(path) as file:
            written = yaml.safe_load(file)
    scenario.observe(
        error=error,
        steps=trainer.global_step,
        written=written,
        skipped=[
            name for w in caught for name in ("special", "other") if str(w.message).startswith(f"Skipping '{name}'")
        ],
    )
