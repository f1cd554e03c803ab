"""``pytorch/callbacks/model_checkpoint.py``: which checkpoints are kept, and what they are ranked by."""

from __future__ import annotations

import inspect
import sys
import time
from pathlib import Path
from typing import Any, Callable, Optional

from lightning_patches.distributions import module_name
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"


def _remove_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def remove_checkpoint(self: Any, trainer: Any, filepath: Any) -> None:
        if not _has_to_stay(filepath, trainer.ckpt_path, self.dirpath):
            original(self, trainer, filepath)

    return remove_checkpoint


def _has_to_stay(filepath: Any, resumed_from: Any, dirpath: Any) -> bool:
    """Whether a local file is the one that training was resumed from, or lies outside of the callback's directory."""
    if _protocol(filepath) != "file":
        return False
    path = Path(filepath).absolute()
    if resumed_from is not None and path == Path(resumed_from).absolute():
        return True
    return dirpath is not None and Path(dirpath).absolute() not in path.parents


def _file_exists(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def file_exists(self: Any, filepath: Any, trainer: Any) -> bool:
        exists = trainer.is_global_zero and self._fs.exists(filepath)
        return bool(trainer.strategy.reduce_boolean_decision(exists, all=False))

    return file_exists


def _remove_remote(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def remove_checkpoint(self: Any, trainer: Any, filepath: Any) -> None:
        if not _has_to_stay_there(str(filepath), trainer.ckpt_path, self.dirpath):
            original(self, trainer, filepath)

    return remove_checkpoint


def _has_to_stay_there(filepath: str, resumed_from: Any, dirpath: Any) -> bool:
    """The same of a file that is not on a local disk. Only compares names, asks no server."""
    if _protocol(filepath) == "file":
        return False
    if resumed_from is not None and _place(resumed_from) == _place(filepath):
        return True
    if dirpath is None:
        return False
    (protocol, path), (where, directory) = _place(filepath), _place(dirpath)
    return protocol != where or not path.startswith(f"{directory}/")


def _place(path: Any) -> tuple[str, str]:
    """Protocol, and path below it without a trailing slash."""
    from fsspec import get_filesystem_class  # type: ignore[import-untyped]

    protocol = _protocol(path)
    return protocol, str(get_filesystem_class(protocol)._strip_protocol(str(path))).rstrip("/")


def _protocol(path: Any) -> str:
    from fsspec.utils import get_protocol  # type: ignore[import-untyped]

    return str(get_protocol(str(path)))


_WAITING = "_waiting_for_validation"
"""The step whose save was put off to the validation behind it; ``_ANY`` where a metric was missing that validation may
bring."""
_ANY = -1


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        if self.monitor is None or not (self._every_n_train_steps >= 1 or self._train_time_interval):
            original(self, trainer, pl_module, *args, **kwargs)
            return
        if not _is_due(self, trainer):
            return
        candidates = self._monitor_candidates(trainer)
        missing = self.monitor not in candidates
        misspelled = missing and trainer.fit_loop.epoch_loop.val_loop._has_run
        if not misspelled and _may_wait(self, pl_module, namespace) and _validation_follows(trainer):
            setattr(self, _WAITING, trainer.global_step)
            self._last_time_checked = time.monotonic()
        elif missing or not pl_module.automatic_optimization:
            if missing:
                setattr(self, _WAITING, _ANY)
            original(self, trainer, pl_module, *args, **kwargs)
        else:
            vars(self).pop(_WAITING, None)
            self._last_time_checked = time.monotonic()
            self._save_topk_checkpoint(trainer, candidates)
            self._save_last_checkpoint(trainer, candidates)

    return on_train_batch_end


def _on_validation_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_validation_end(self: Any, trainer: Any, pl_module: Any) -> None:
        waiting: Optional[int] = vars(self).get(_WAITING)
        if waiting in (_ANY, trainer.global_step) and not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            there = self.monitor in candidates
            if there:
                delattr(self, _WAITING)
                self._defer_save_until_validation = False  # what 2.5.5 and later remember of the same
                self._save_topk_checkpoint(trainer, candidates)
            if there or waiting != _ANY:
                self._save_last_checkpoint(trainer, candidates)
            if there:
                return
        original(self, trainer, pl_module)

    return on_validation_end


def _is_due(callback: Any, trainer: Any) -> bool:
    """Whether the callback saves after this batch, as it decides it itself."""
    steps = callback._every_n_train_steps
    if steps >= 1 and trainer.global_step % steps != 0 or callback._should_skip_saving_checkpoint(trainer):
        return False
    if steps >= 1:
        return True
    last = callback._last_time_checked
    over = last is not None and time.monotonic() - last >= callback._train_time_interval.total_seconds()
    return bool(trainer.strategy.broadcast(over))


def _may_wait(callback: Any, pl_module: Any, namespace: str) -> bool:
    """Whether on_validation_end is Lightning's own, and the weights may be saved there.

    A subclass need not save in its own. From 2.6.0 on, a model with manual optimization may keep the weights from
    before its optimizer step, which are saved in their place at the end of the batch only.
    """
    module = sys.modules[module_name(namespace, "pytorch.callbacks.model_checkpoint")]
    own = type(callback).on_validation_end is module.ModelCheckpoint.on_validation_end
    return own and (pl_module.automatic_optimization or not hasattr(pl_module, "saved_models"))


def _validation_follows(trainer: Any) -> bool:
    """Whether the fit validates before it takes another batch, in every rank alike."""
    if getattr(trainer, "_val_check_time_interval", None) is not None:
        return False  # each rank looks at its own clock
    loop = trainer.fit_loop.epoch_loop
    if sum(loop.val_loop._max_batches) == 0:
        return False  # nothing to validate with, or not known before the validation begins
    check = loop._should_check_val_fx
    fetcher = (trainer.fit_loop._data_fetcher,)
    return bool(check(*fetcher[: len(inspect.signature(check).parameters)]))  # 2.0 takes none


PATCHES = (
    Patch(
        name="checkpoint-kept-on-resume",
        title="ModelCheckpoint does not delete the checkpoint that training was resumed from",
        group="correctness",
        affected=(">=2.0.0,<2.1.3",),
        targets=(Target(f"{_CALLBACK}._remove_checkpoint", _remove_checkpoint),),
        witnesses=(f"{_CALLBACK}._save_last_checkpoint",),
        upstream=Upstream(
            issues=(17189, 16426),
            pull_requests=(18750, 19023),
            commit="b8a96fe5d6",
            fixed_in="2.1.3",
            tests=(
                "tests/tests_pytorch/checkpointing/test_model_checkpoint.py"
                "::test_resume_and_old_checkpoint_files_remain",
            ),
        ),
        impact=Impact(
            "After a resumed run the checkpoint that was passed as ckpt_path is gone, and so may be files of an "
            "earlier run in another directory.",
            ("the checkpoint I resumed from was deleted", "best_model_path of the first run does not exist"),
        ),
        note="2.1.0 to 2.1.2 have the official fix, but it takes local files for remote ones with fsspec 2023.10 and "
        "later. Files that are not on a local disk are removed as before, as in the official fix.",
    ),
    Patch(
        name="remote-checkpoint-kept-on-resume",
        title="ModelCheckpoint does not delete the remote checkpoint that training was resumed from",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target(f"{_CALLBACK}._remove_checkpoint", _remove_remote),),
        upstream=Upstream(issues=(21813,)),
        impact=Impact(
            "After a resumed run with checkpoints on s3, gs or another remote file system, the checkpoint that was "
            "passed as ckpt_path is gone, even where it belongs to another run.",
            ("the checkpoint I resumed from was deleted from the bucket", "previous run's checkpoint is deleted"),
        ),
        equivalent_to="save_top_k=-1 in the resumed run, as far as the files of the earlier run are concerned",
        note="Files of the run itself are removed as before, so that save_top_k keeps its meaning.",
    ),
    Patch(
        name="checkpoint-after-validation",
        title="A checkpoint that is due when a validation follows has that validation's metric",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(
            Target(f"{_CALLBACK}.on_train_batch_end", _on_train_batch_end),
            Target(f"{_CALLBACK}.on_validation_end", _on_validation_end),
        ),
        upstream=Upstream(
            issues=(20919, 20185, 17417),
            pull_requests=(21106,),
            commit="b1cc925d94",
            tests=(
                "tests/tests_pytorch/callbacks/test_model_checkpoint_step_interval_val_metric.py"
                "::test_model_checkpoint_every_n_train_steps_with_val_metric_saves_after_val",
            ),
        ),
        impact=Impact(
            "ModelCheckpoint(monitor='val_loss', every_n_train_steps=N) saves just before the validation that belongs "
            "to the step: the file is named and ranked by the validation before, the best one is the wrong one, and "
            "the first one is not saved.",
            ("best_model_path is not the best checkpoint", "checkpoint has the val_loss of the previous validation"),
        ),
        further_than_upstream="The official fix (2.5.5) waits for the validation only at the last batch of an epoch, "
        "and not with the default save_on_train_epoch_end when validation runs once per epoch. There, and at a "
        "validation within the epoch, 2.6.6 still uses the metric from before. Where no validation follows the last "
        "batch, it drops the save; here it is made, as before.",
        equivalent_to="ModelCheckpoint(monitor=...) without every_n_train_steps, which saves after each validation",
        note="Such a checkpoint is written after the validation, not before it. A save with which no validation "
        "coincides is made at once, by the latest metric that is known, as before. A subclass with an "
        "on_validation_end of its own, and validation by the clock (2.6), are left as they are.",
    ),
    Patch(
        name="checkpoint-exists-on-rank-zero",
        title="Only rank zero asks the storage whether a checkpoint exists; no object is broadcast",
        group="crash",
        affected=(">=2.0.0,<2.6.0",),
        targets=(Target(f"{_CALLBACK}.file_exists", _file_exists),),
        upstream=Upstream(
            issues=(19674,),
            pull_requests=(21380,),
            commit="b09e96edb7",
            fixed_in="2.6.0",
            tests=(
                "tests/tests_pytorch/checkpointing/test_checkpoint_callback_frequency.py"
                "::test_model_checkpoint_ddp_monitor_none",
            ),
        ),
        impact=Impact(
            "At each save every rank asks the storage whether the file exists, though only rank zero's answer counts: "
            "a rank without access to it ends the run. The answer is broadcast as a pickled object, through the "
            "GPU's memory where there is one.",
            ("CUDA out of memory in broadcast_object_list while a checkpoint is saved",),
        ),
        note="Lightning's own method that decides together takes the place of the broadcast: one number is reduced.",
    ),
)
