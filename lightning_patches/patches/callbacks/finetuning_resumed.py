"""A resumed BackboneFinetuning continues to train the backbone."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_FINETUNING = "pytorch.callbacks.finetuning"
_FROZEN = (
    "Since this training was resumed, parameters that had been unfrozen and given to the optimizer are frozen again, "
    "and are not trained. "
)
_HERE = "Unfreeze them in on_fit_start of your finetuning callback, with self.make_trainable(...)."
_ON_ALL_RANKS = "Never freeze them, and give them a parameter group with lr=0 until they are to train."


def _unfreeze(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_start(self: Any, trainer: Any, pl_module: Any) -> None:
        resumed = self._restarting
        original(self, trainer, pl_module)
        # DDP has already wrapped the module, and would not synchronize parameters that are unfrozen here.
        if not resumed or self.previous_backbone_lr is None or trainer.world_size > 1:
            return
        # If the new callback unfreezes at a later epoch than the one in the checkpoint, the backbone stays frozen until
        # then.
        if trainer._checkpoint_connector._loaded_checkpoint.get("epoch", -1) >= self.unfreeze_backbone_at_epoch:
            self.make_trainable(pl_module.backbone)

    return on_fit_start


def _remember_groups(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_start(self: Any, trainer: Any, pl_module: Any) -> None:
        made = [len(optimizer.param_groups) for optimizer in trainer.optimizers] if self._restarting else None
        original(self, trainer, pl_module)
        if made:
            self._groups_of_user = made

    return on_fit_start


def _warn_about_frozen(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_epoch_start(self: Any, trainer: Any, pl_module: Any) -> None:
        original(self, trainer, pl_module)
        groups_of_user = vars(self).pop("_groups_of_user", ())
        for optimizer, made in zip(trainer.optimizers, groups_of_user) if groups_of_user else ():
            if any(
                not p.requires_grad and (number >= made or _was_stepped(optimizer, p))
                for number, group in enumerate(optimizer.param_groups)
                for p in group["params"]
            ):
                # DDP ignores parameters that were frozen when it started.
                remedy = _ON_ALL_RANKS if trainer.world_size > 1 else _HERE
                notices.warn_once("finetuning-resumed", _FROZEN + remedy)

    return on_train_epoch_start


def _was_stepped(optimizer: Any, parameter: Any) -> bool:
    """True if the optimizer's state is not all zeros, as some optimizers create it before the first step."""
    import torch

    state = vars(optimizer).get("state", {}).get(parameter)
    values = state.values() if isinstance(state, dict) else ()
    return any(type(value) is torch.Tensor and bool(value.any()) for value in values)


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("numbers", "runs that are resumed after the backbone was unfrozen train the backbone"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(
            f"{_FINETUNING}:BackboneFinetuning.on_fit_start",
            _unfreeze,
            stock=("self.finetune_function", "self.unfreeze_and_add_param_group", "self.make_trainable"),
        ),
        Target(f"{_FINETUNING}:BaseFinetuning.on_fit_start", _remember_groups),
        Target(f"{_FINETUNING}:BaseFinetuning.on_train_epoch_start", _warn_about_frozen),
    ),
    upstream=Upstream(issues=(21901,), pull_requests=(21902,)),
    impact=Impact(
        "After a run with BackboneFinetuning is resumed, a backbone that was already unfrozen is frozen again "
        "and never trained, without a warning.",
        (
            "backbone is frozen after resuming",
            "requires_grad is False after resuming with BackboneFinetuning",
            "BaseFinetuning freezes unfrozen modules again when it resumes from a checkpoint",
        ),
    ),
    opt_in="users who resume runs with BackboneFinetuning",
    signs=("ckpt_path BackboneFinetuning",),
    note="Opt-in because programs unfreeze a part of the backbone themselves. Callbacks that override "
    "finetune_function are unchanged, because they may have frozen the parameters on purpose. Jobs with "
    "several ranks are also unchanged, because DDP would not synchronize parameters that are unfrozen "
    "later. In both cases a warning is printed. To keep the backbone frozen, set "
    "unfreeze_backbone_at_epoch to a later epoch. Without the patch, use a subclass that calls "
    "self.make_trainable(pl_module.backbone) in on_fit_start.",
    after=("finetuning-with-lr-finder",),
)
