"""``pytorch/loggers/utilities.py``, ``pytorch/core/saving.py``: hyperparameters on their way to the loggers."""

from __future__ import annotations

import warnings
from argparse import Namespace
from enum import Enum
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_INITIAL = "_hparams_initial"
_CLASS = "_class_path"
"""The name under which LightningCLI saves, among the hyperparameters, which class they belong to."""


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


def _save_hparams_to_yaml(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_hparams_to_yaml(config_yaml: Any, hparams: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(config_yaml, hparams, *args, **kwargs)
        except ValueError:
            values = vars(hparams) if isinstance(hparams, Namespace) else hparams
            refused = {name: type(value).__name__ for name, value in values.items() if _is_refused(value)}
            if not refused:
                raise
            for name, kind in refused.items():
                warnings.warn(f"Skipping {name!r}, a {kind}: YAML cannot hold it.", stacklevel=2)
            rest = {name: value for name, value in values.items() if name not in refused}
            original(config_yaml, rest, *args, **kwargs)
            if type(values) is dict:  # of other kinds the original made a copy
                values.update(rest, **refused)

    return save_hparams_to_yaml


def _is_refused(value: Any) -> bool:
    """Whether YAML says with a ValueError that it cannot hold the value."""
    import yaml  # type: ignore[import-untyped]

    try:
        yaml.dump(value.name if isinstance(value, Enum) else value)
    except ValueError:
        return True
    except TypeError:  # the original knows what to do
        pass
    return False


PATCHES = (
    Patch(
        name="cli-both-save-hyperparameters",
        title="With LightningCLI, both the model and the datamodule can save their hyperparameters",
        group="crash",
        affected=(">=2.4.0,<2.5.0",),
        targets=(Target("pytorch.loggers.utilities:_log_hyperparams", _log_hyperparams),),
        calls=("pytorch.trainer.trainer:Trainer.lightning_module()",),
        upstream=Upstream(
            pull_requests=(20221,),
            commit="a9125c25bf",
            fixed_in="2.5.0",
            tests=("tests/tests_pytorch/test_cli.py::test_lightning_cli_save_hyperparameters_merge",),
        ),
        impact=Impact(
            "With LightningCLI in subclass mode, every run with a logger fails where both the model and the datamodule "
            "call save_hyperparameters().",
            ("Error while merging hparams: the keys ['_class_path'] are present in both",),
        ),
        note="Where only one of them has saved its class, it is logged as before; from 2.5.0 on it is not. 2.3 fails "
        "as well, for another reason: it saves what the parser has, class_path and init_args.",
    ),
    Patch(
        name="hparams-that-yaml-refuses",
        title="A hyperparameter that YAML cannot hold is left out of hparams.yaml",
        group="crash",
        affected=(">=2.0.0,<2.3.0",),
        targets=(Target("pytorch.core.saving:save_hparams_to_yaml", _save_hparams_to_yaml),),
        upstream=Upstream(
            pull_requests=(19804,),
            commit="5fa32d95e3",
            fixed_in="2.3.0",
            tests=("tests/tests_pytorch/models/test_hparams.py::test_save_hparams_to_yaml_warning",),
        ),
        impact=Impact(
            "A dtype, a torchmetrics metric and other objects that YAML refuses with a ValueError, saved with "
            "save_hyperparameters(), end the training before its first batch.",
            ("ValueError: dictionary update sequence element #0 has length 1; 2 is required",),
        ),
    ),
)
