"""The Trainer loads a checkpoint into layers that configure_model creates."""

import contextlib
import copy
from collections import OrderedDict
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CONFIGURED = "_configured_before_loading"


def _restore_model(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_model(self: Any) -> None:
        trainer = self.trainer
        vars(trainer).pop(_CONFIGURED, None)  # from a run that ended before configure_model
        strategy = trainer._accelerator_connector.strategy  # a Trainer subclass may override `strategy`
        base = upstream_module(namespace, "pytorch.core.module").LightningModule
        if (
            not self._loaded_checkpoint
            or type(strategy._lightning_module).configure_model is base.configure_model
            or strategy.restore_checkpoint_after_setup
        ):
            original(self)
            return
        # Copy the parts that on_load_checkpoint may change, without calling methods of the program's objects.
        before = {
            name: copy.copy(value) if type(value) in (dict, OrderedDict) else value
            for name, value in self._loaded_checkpoint.items()
        }
        try:
            original(self)
        except Exception as error:  # raise the first error if the second attempt also fails
            with contextlib.suppress(Exception):
                upstream_module(namespace, "pytorch.trainer.call")._call_configure_model(trainer)
                self._loaded_checkpoint = before
                original(self)
                setattr(trainer, _CONFIGURED, True)
                return
            raise error

    return restore_model


def _call_configure_model(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _call_configure_model(trainer: Any) -> None:
        if not vars(trainer).pop(_CONFIGURED, False):
            original(trainer)

    return _call_configure_model


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.1.0,<2.2.0",),
    targets=(
        Target("pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector.restore_model", _restore_model),
        Target("pytorch.trainer.call:_call_configure_model", _call_configure_model),
    ),
    upstream=Upstream(pull_requests=(19060,), commit="7d04de697e", fixed_in="2.2.0"),
    impact=Impact(
        "fit, validate, test or predict with ckpt_path fails if the module creates layers in configure_model, "
        "because the checkpoint has keys that the module does not have yet.",
        ("Unexpected key(s) in state_dict",),
        error='RuntimeError: Error(s) in loading state_dict for ...: Unexpected key(s) in state_dict: "..."',
        frames=("/pytorch/trainer/connectors/checkpoint_connector.py",),
    ),
    after=("tuner-cleanup-on-error",),
    note="The official fix always calls configure_model before the checkpoint is loaded. This patch calls it "
    "at that point only if loading fails without it, and only once per run.",
)
