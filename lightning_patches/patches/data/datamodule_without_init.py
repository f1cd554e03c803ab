"""A LightningDataModule whose __init__ does not call super().__init__() can be used."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_DEFAULTS = {
    "prepare_data_per_node": True,
    "allow_zero_length_dataloader_with_multiple_devices": False,
    "_log_hyperparams": False,
}


def _attach_datamodule(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def attach_datamodule(self: Any, model: Any, datamodule: Any = None) -> None:
        if isinstance(datamodule, upstream_module(namespace, "pytorch.core.datamodule").LightningDataModule):
            for name, value in _DEFAULTS.items():
                if inspect.getattr_static(datamodule, name, _DEFAULTS) is _DEFAULTS:
                    setattr(datamodule, name, value)
        original(self, model, datamodule)

    return attach_datamodule


PATCH = Patch(
    added="0.3.0",
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.trainer.connectors.data_connector:_DataConnector.attach_datamodule", _attach_datamodule),),
    upstream=Upstream(issues=(21358,)),
    impact=Impact(
        "A LightningDataModule whose __init__ does not call super().__init__() ends in an AttributeError that names an "
        "internal attribute.",
        (
            "AttributeError: 'DataModule' object has no attribute 'allow_zero_length_dataloader_with_multiple_devices'",
            "object has no attribute 'prepare_data_per_node'",
        ),
        error="AttributeError: '...' object has no attribute 'prepare_data_per_node'",
        would_tell="that __init__ of the datamodule calls super().__init__()",
    ),
)
