"""Pruned weights stay pruned in a resumed run."""

from __future__ import annotations

import copy
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target

_CONNECTOR = "pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector"
_KEY = "pruning_masks"
"""Key in a checkpoint whose weights are pruned permanently: by name of the weight, True where it is kept."""


def _masks(tensors: dict[str, Any]) -> dict[str, Any]:
    """Return the masks among the parameters and buffers of a module, by the names of the pruned weights."""
    names = [name[: -len("_mask")] for name in tensors if name.endswith("_mask")]
    return {name: tensors[f"{name}_mask"] for name in names if f"{name}_orig" in tensors}


def _masks_of(module: Any) -> dict[str, Any]:
    from torch.nn import Module

    return _masks({**dict(Module.named_parameters(module)), **dict(Module.named_buffers(module))})


def _prunes(trainer: Any, namespace: str) -> bool:
    kind = upstream_module(namespace, "pytorch.callbacks.pruning").ModelPruning
    return any(isinstance(callback, kind) for callback in trainer.callbacks)


def _on_save_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_save_checkpoint(self: Any, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        original(self, trainer, pl_module, checkpoint)
        masks = _masks_of(pl_module) if self._make_pruning_permanent else {}
        if masks:
            checkpoint[_KEY] = {name: mask.bool().cpu() for name, mask in masks.items()}

    return on_save_checkpoint


def _load_model_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_model_state_dict(self: Any, checkpoint: Any, *args: Any, **kwargs: Any) -> None:
        module = self._lightning_module
        trainer = module._trainer
        pruned = _masks(checkpoint["state_dict"])
        if pruned and _prunes(trainer, namespace):
            present, state = _masks_of(module), copy.copy(checkpoint["state_dict"])
            for name in pruned:
                if name not in present:
                    weight = state.pop(f"{name}_orig")
                    # A run that continues gets its mask back later, when the optimizers have the parameters.
                    state[name] = weight if trainer.state.fn == "fit" else weight * state[f"{name}_mask"]
                    del state[f"{name}_mask"]
            checkpoint = {**checkpoint, "state_dict": state}
        original(self, checkpoint, *args, **kwargs)

    return load_model_state_dict


def _restore_training_state(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_training_state(self: Any) -> None:
        trainer, checkpoint = self.trainer, self._loaded_checkpoint
        if checkpoint and trainer.state.fn == "fit" and _prunes(trainer, namespace):
            from torch.nn.utils.prune import custom_from_mask

            modules = dict(trainer.lightning_module.named_modules())
            for name, mask in {**checkpoint.get(_KEY, {}), **_masks(checkpoint["state_dict"])}.items():
                path, _, attribute = name.rpartition(".")
                weight = modules[path]._parameters.get(attribute) if path in modules else None
                if weight is not None:  # else the program has pruned it again itself
                    custom_from_mask(modules[path], attribute, mask.to(weight))
        original(self)

    return restore_training_state


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a resumed run with ModelPruning; its checkpoints have the masks"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target("pytorch.callbacks.pruning:ModelPruning.on_save_checkpoint", _on_save_checkpoint),
        Target("pytorch.strategies.strategy:Strategy.load_model_state_dict", _load_model_state_dict),
        Target(f"{_CONNECTOR}.restore_training_state", _restore_training_state),
    ),
    impact=Impact(
        "A resumed run with ModelPruning trains the pruned weights again, since the checkpoint has no masks. A "
        "checkpoint of ModelPruning(make_pruning_permanent=False) cannot be loaded at all.",
        (
            "pruned weights are trained again after resuming with ModelPruning",
            "Unexpected key(s) in state_dict: weight_orig, weight_mask",
        ),
    ),
    opt_in="users who resume runs with ModelPruning",
    signs=("ckpt_path ModelPruning",),
    note="Opt-in because the masks are added to the checkpoint, and programs prune the weights again "
    "themselves. Equivalent to the run without a break. The masks are in the checkpoint, where Lightning "
    "without the patch ignores them. Checkpoints that have no masks, since they were saved without the "
    "patch, are loaded as without it. Weights that the program prunes itself before the optimizers are "
    "made are unchanged. With make_pruning_permanent=False, validate, test and predict load the masked "
    "weights. With use_lottery_ticket_hypothesis, a resumed run resets weights to the initial ones of the "
    "new process.",
)
