"""With LightningCLI, both the model and the datamodule can save their hyperparameters."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_INITIAL = "_hparams_initial"

_CLASS = "_class_path"
"""The hyperparameter in which LightningCLI saves the name of the class."""


def _log_hyperparams(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def log_hyperparams(trainer: Any) -> None:
        holders = [h for h in (trainer.lightning_module, trainer.datamodule) if h is not None and h._log_hyperparams]
        saved = [vars(holder).get(_INITIAL) or {} for holder in holders]
        classes = [values[_CLASS] for values in saved if _CLASS in values]
        if len(classes) < 2 or classes[0] == classes[1]:
            original(trainer)
            return
        for holder, values in zip(holders, saved):
            setattr(holder, _INITIAL, type(values)({name: values[name] for name in values if name != _CLASS}))
        try:
            original(trainer)
        finally:
            for holder, values in zip(holders, saved):
                setattr(holder, _INITIAL, values)

    return log_hyperparams


PATCH = Patch(
    group="crash",
    affected=(">=2.4.0,<2.5.0",),
    targets=(Target("pytorch.loggers.utilities:_log_hyperparams", _log_hyperparams),),
    upstream=Upstream(
        pull_requests=(20221,),
        commit="a9125c25bf",
        fixed_in="2.5.0",
        tests=("tests/tests_pytorch/test_cli.py::test_lightning_cli_save_hyperparameters_merge",),
    ),
    impact=Impact(
        "With LightningCLI in subclass mode, each run with a logger fails if both the model and the datamodule call "
        "save_hyperparameters().",
        ("Error while merging hparams: the keys ['_class_path'] are present in both",),
        error="RuntimeError: Error while merging hparams: the keys ['_class_path'] are present in both the "
        "LightningModule's and LightningDataModule's hparams but have different values.",
    ),
    note="If only one of them saves its class, the class is still logged; from 2.5.0 on it is not. 2.3 also "
    "fails, for another reason: it saves the parser's class_path and init_args.",
)
