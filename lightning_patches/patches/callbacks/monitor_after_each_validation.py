"""Monitors work without validation data, and with val_check_interval=1."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_CHECKPOINT = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"
_STOPPING = "pytorch.callbacks.early_stopping:EarlyStopping"


def _is_each_batch(trainer: Any) -> bool:
    return type(trainer.val_check_interval) is int and trainer.val_check_interval == 1 and trainer.enable_validation


def _should_save_on_train_epoch_end(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def should_save_on_train_epoch_end(self: Any, trainer: Any) -> bool:
        if self._save_on_train_epoch_end is None and trainer.state.fn == "fit":
            if not trainer.enable_validation:
                return True
            if _is_each_batch(trainer):
                return False
        return original(self, trainer)

    return should_save_on_train_epoch_end


def _setup(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup(self: Any, trainer: Any, *args: Any, **kwargs: Any) -> None:
        if self._check_on_train_epoch_end is None and trainer.state.fn == "fit":
            if not trainer.enable_validation:
                self._check_on_train_epoch_end = True
            elif _is_each_batch(trainer):
                self._check_on_train_epoch_end = False
        original(self, trainer, *args, **kwargs)

    return setup


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "which checkpoints are saved, and when training stops"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_CHECKPOINT}._should_save_on_train_epoch_end", _should_save_on_train_epoch_end),
        Target(f"{_STOPPING}.setup", _setup),
    ),
    impact=Impact(
        "With check_val_every_n_epoch=2 or val_check_interval=0.5 and no validation data, EarlyStopping checks nothing "
        "and ModelCheckpoint may save nothing. They take val_check_interval=1 for 1.0, and ignore the validations "
        "after each batch.",
        (
            "no checkpoint is saved without validation data and check_val_every_n_epoch=2",
            "EarlyStopping never stops without a validation loop",
            "ModelCheckpoint and EarlyStopping ignore the validations of val_check_interval=1",
        ),
        would_tell="that there is no validation data, or val_check_interval is the integer 1",
    ),
    opt_in="users who train without validation data, or validate after each batch",
    note="The same as save_on_train_epoch_end and check_on_train_epoch_end set by hand. Opt-in because training stops "
    "and checkpoints are written at other times.",
)
