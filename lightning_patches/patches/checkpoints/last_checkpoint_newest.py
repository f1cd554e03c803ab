"""last.ckpt is saved whenever ModelCheckpoint checks its monitor."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"


def is_due(callback: Any, trainer: Any, on_train_epoch_end: bool) -> bool:
    """True if the callback checks its monitor in this hook and writes last.ckpt as a file, not as a link."""
    return (
        bool(callback.save_last)
        and callback.monitor is not None
        and callback.save_last != "link"
        and not callback._should_skip_saving_checkpoint(trainer)
        and callback._should_save_on_train_epoch_end(trainer) == on_train_epoch_end
        and callback._every_n_epochs >= 1
        and (trainer.current_epoch + 1) % callback._every_n_epochs == 0
    )


def _saving_last(on_train_epoch_end: bool) -> Callable[..., Any]:
    def build(original: Callable[..., None], namespace: str) -> Callable[..., None]:
        def hook(self: Any, trainer: Any, pl_module: Any) -> None:
            due = is_due(self, trainer, on_train_epoch_end)
            original(self, trainer, pl_module)
            if due and self._last_global_step_saved != trainer.global_step:
                self._save_last_checkpoint(trainer, self._monitor_candidates(trainer))

        return hook

    return build


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "last.ckpt is the checkpoint of the last epoch instead of the best one"),
    affected=(">=2.6.0,<=2.6.6",),
    targets=(
        Target(f"{_CALLBACK}.on_train_epoch_end", _saving_last(True), stock=("self",)),
        Target(f"{_CALLBACK}.on_validation_end", _saving_last(False), stock=("self",)),
    ),
    upstream=Upstream(issues=(20245, 19325)),
    impact=Impact(
        "With a monitor and save_last=True, last.ckpt stays at the best epoch, because it is written only when "
        "the monitored metric improves. A run that is resumed from it repeats all epochs after the best one.",
        (
            "last.ckpt is the best checkpoint and not the last",
            "last.ckpt is not updated if the monitored metric does not improve",
        ),
    ),
    opt_in="users who set a monitor and resume from last.ckpt, on 2.6.0 and later",
    signs=("ModelCheckpoint save_last monitor",),
    note="The patch is equivalent to a second ModelCheckpoint(save_top_k=0, save_last=True) without a monitor, "
    "and to releases below 2.6.0. Opt-in because some programs use last.ckpt as the best checkpoint. "
    "save_last='link' and subclasses are unchanged.",
)
