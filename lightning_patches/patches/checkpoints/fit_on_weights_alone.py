"""fit can continue from a checkpoint that has only weights, with new optimizers."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CONNECTORS = "pytorch.trainer.connectors.checkpoint_connector"
_RESTORES = "restore_optimizers_and_schedulers"
_SAYS = "The checkpoint contains only weights: optimizers and learning rate schedulers start again."


def _restore(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_optimizers_and_schedulers(self: Any) -> None:
        checkpoint = self._loaded_checkpoint
        if checkpoint and "optimizer_states" not in checkpoint and "lr_schedulers" not in checkpoint:
            notices.warn_once("fit-on-weights-alone", _SAYS)
            return
        original(self)

    return restore_optimizers_and_schedulers


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_CONNECTORS}:_CheckpointConnector.{_RESTORES}", _restore, since="2.0.0"),
        Target(f"{_CONNECTORS}:CheckpointConnector.{_RESTORES}", _restore, before="2.0.0"),
    ),
    upstream=Upstream(issues=(20230,)),
    impact=Impact(
        "fit(ckpt_path=...) with a checkpoint that was saved with save_weights_only=True raises a KeyError.",
        (
            "Trying to restore optimizer state but checkpoint contains only the model",
            "Trying to restore learning rate scheduler state but checkpoint contains only the model",
        ),
        error="KeyError: 'Trying to restore optimizer state but checkpoint contains only the model. This is "
        "probably due to `ModelCheckpoint.save_weights_only` being set to `True`.'",
    ),
    opt_in="users who continue the epoch and step count of a run from a checkpoint without optimizer states",
    signs=("save_weights_only",),
    note="Opt-in because the momentum of the optimizer and the state of the schedulers are lost, which the "
    "error prevents. The patch warns once. To start at epoch 0 instead, load the weights with "
    "load_from_checkpoint.",
)
