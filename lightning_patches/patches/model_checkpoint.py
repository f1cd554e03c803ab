"""``pytorch/callbacks/model_checkpoint.py``: which checkpoints are kept, their names, and what they are ranked by."""

from __future__ import annotations

import inspect
import os
import re
import time
from pathlib import Path
from typing import Any, Callable, Iterable, Optional

from lightning_patches.engine.distributions import ROOT_PACKAGES, upstream_module
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
        if not _agrees_as_lightning_does(trainer.strategy, namespace):
            return original(self, filepath, trainer)
        exists = trainer.is_global_zero and self._fs.exists(filepath)
        return bool(trainer.strategy.reduce_boolean_decision(exists, all=False))

    return file_exists


def _agrees_as_lightning_does(strategy: Any, namespace: str) -> bool:
    """Whether nobody but Lightning says how the ranks of this strategy come to a decision."""
    for name in ("broadcast", "reduce_boolean_decision", "reduce", "root_device", "is_global_zero", "global_rank"):
        found = inspect.getattr_static(strategy, name)
        module = getattr(getattr(found, "fget", found), "__globals__", {}).get("__name__", "")
        if not module.startswith(f"{namespace}."):
            return False
    return True


def _overwriting_own(original: Callable[..., str], namespace: str) -> Callable[..., str]:
    def get_name(self: Any, monitor_candidates: Any, trainer: Any, del_filepath: Optional[str] = None) -> str:
        own = self.best_model_path
        if self.monitor is None and self.save_top_k == 1 and own and not _is_resumed_from(own, trainer.ckpt_path):
            del_filepath = own
        return original(self, monitor_candidates, trainer, del_filepath)

    return get_name


def _is_resumed_from(filepath: str, resumed_from: Any) -> bool:
    return resumed_from is not None and _place(resumed_from) == _place(filepath)


def _remove_remote(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def remove_checkpoint(self: Any, trainer: Any, filepath: Any) -> None:
        if not _has_to_stay_there(str(filepath), trainer.ckpt_path, self.dirpath):
            original(self, trainer, filepath)

    return remove_checkpoint


def _has_to_stay_there(filepath: str, resumed_from: Any, dirpath: Any) -> bool:
    """The same for a file that is not on a local disk. Only compares names, asks no server."""
    if _protocol(filepath) == "file":
        return False
    if resumed_from is not None and _place(resumed_from) == _place(filepath):
        return True
    if dirpath is None:
        return False
    (protocol, path), (where, directory) = _place(filepath), _place(dirpath)
    return protocol != where or not path.startswith(f"{directory}/")


def _place(path: Any) -> tuple[str, str]:
    """Protocol, and path below it. Told by the text: only the program's CheckpointIO may know what it means."""
    text, protocol = str(path), _protocol(path)
    if protocol == "file":
        return protocol, os.path.abspath(text.rpartition("://")[2])
    return protocol, text[len(protocol) :].lstrip(":").strip("/")


def _protocol(path: Any) -> str:
    from fsspec.utils import get_protocol  # type: ignore[import-untyped]

    return str(get_protocol(str(path)))


_WAITING = "_waiting_for_validation"
"""The step whose save was put off until the validation after it; ``_ANY`` where a metric was missing that validation
may bring."""
_ANY = -1


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        saves_here = self._every_n_train_steps >= 1 or self._train_time_interval
        if self.monitor is None or not saves_here or not _may_wait(self, trainer, pl_module, namespace):
            original(self, trainer, pl_module, *args, **kwargs)
            return
        if not _is_due(self, trainer):
            return
        candidates = self._monitor_candidates(trainer)
        missing = self.monitor not in candidates
        misspelled = missing and trainer.fit_loop.epoch_loop.val_loop._has_run
        if not misspelled and _is_validated(self.monitor, trainer, missing) and _validation_follows(trainer):
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
        if waiting == trainer.global_step and _is_saved_at_epoch_end(self, trainer):
            return
        if waiting in (_ANY, trainer.global_step) and not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            there = self.monitor in candidates
            if there:
                delattr(self, _WAITING)
                self._defer_save_until_validation = False  # what 2.5.5 and later remember about it
                self._save_topk_checkpoint(trainer, candidates)
            if there or waiting != _ANY:
                self._save_last_checkpoint(trainer, candidates)
            if there:
                return
        original(self, trainer, pl_module)

    return on_validation_end


def _on_train_epoch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_epoch_end(self: Any, trainer: Any, pl_module: Any) -> None:
        waits = vars(self).get(_WAITING) == trainer.global_step
        if waits and not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            if self.monitor in candidates:
                delattr(self, _WAITING)
                self._defer_save_until_validation = False
                self._save_topk_checkpoint(trainer, candidates)
                self._save_last_checkpoint(trainer, candidates)
        original(self, trainer, pl_module)

    return on_train_epoch_end


def _is_saved_at_epoch_end(callback: Any, trainer: Any) -> bool:
    """Whether this validation ends the epoch, and checkpoints by metrics belong after both: a fit that is resumed
    from there does not end the epoch again."""
    ends = trainer.fit_loop.epoch_loop.batch_progress.is_last_batch
    return bool(ends and callback._should_save_on_train_epoch_end(trainer))


def _on_exception(original: Optional[Callable[..., None]], namespace: str) -> Callable[..., None]:
    def on_exception(self: Any, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        # In one process only: to save, ranks have to come together, and others may be gone.
        waits = vars(self).pop(_WAITING, None) == trainer.global_step and trainer.world_size == 1
        if waits and not self._should_skip_saving_checkpoint(trainer):
            candidates = self._monitor_candidates(trainer)
            if self.monitor in candidates:
                self._save_topk_checkpoint(trainer, candidates)
            self._save_last_checkpoint(trainer, candidates)
        if original is not None:
            original(self, trainer, pl_module, exception)
        else:
            model_checkpoint = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
            super(model_checkpoint, self).on_exception(trainer, pl_module, exception)

    return on_exception


def _is_due(callback: Any, trainer: Any) -> bool:
    """Whether the callback saves after this batch, as the callback itself would decide."""
    steps = callback._every_n_train_steps
    if steps >= 1 and trainer.global_step % steps != 0 or callback._should_skip_saving_checkpoint(trainer):
        return False
    if steps >= 1:
        return True
    last = callback._last_time_checked
    over = last is not None and time.monotonic() - last >= callback._train_time_interval.total_seconds()
    return bool(trainer.strategy.broadcast(over))


_BEGIN_VALIDATION = ("on_validation_start", "on_validation_epoch_start", "on_validation_model_eval")


def _may_wait(callback: Any, trainer: Any, pl_module: Any, namespace: str) -> bool:
    """Whether nobody's own code would see that a save comes after the validation, and not before it.

    A subclass may count on the file when its on_train_batch_end goes on, or need not save in its on_validation_end.
    What runs when a validation begins may put other weights in, such as an average. From 2.6.0 on, a model with manual
    optimization may keep the weights from before its optimizer step, which are saved in their place at the end of the
    batch only.
    """
    base = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
    module_base = upstream_module(namespace, "pytorch.core.module").LightningModule
    theirs = [c for c in trainer.callbacks if type(c).__module__.partition(".")[0] not in ROOT_PACKAGES]
    return (
        not _overrides(callback, base, ("on_train_batch_end", "on_validation_end", "on_train_epoch_end"))
        and not _overrides(pl_module, module_base, _BEGIN_VALIDATION)
        and not any(_overrides(other, base, _BEGIN_VALIDATION) for other in theirs)
        and (pl_module.automatic_optimization or not hasattr(pl_module, "saved_models"))
    )


def _overrides(instance: Any, base: type, hooks: Iterable[str]) -> bool:
    return any(
        hook in vars(instance) or getattr(type(instance), hook, None) is not getattr(base, hook, None) for hook in hooks
    )


def _is_validated(monitor: str, trainer: Any, missing: bool) -> bool:
    """Whether the metric comes, or may yet come, from the validation and not from the training."""
    loop = trainer.fit_loop.epoch_loop
    validated = missing or _logs(loop.val_loop, monitor)
    return validated and not _logs(loop, monitor)


def _logs(loop: Any, metric: str) -> bool:
    name = metric.partition("/dataloader_idx_")[0]
    return any(
        name in (meta.name, meta.forked_name(on_step=True), meta.forked_name(on_step=False))
        for meta in (result.meta for result in loop._results.values())
    )


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


def _format_checkpoint_name(original: Callable[..., str], namespace: str) -> Callable[..., str]:
    def format_checkpoint_name(
        cls: type, filename: Any, metrics: dict[str, Any], prefix: str = "", auto_insert_metric_name: bool = True
    ) -> str:
        names = re.findall(r"\{([^:}]*)", filename or "")
        # The original replaces one name after the other, and within the longer one, too, if the shorter comes first.
        if any(later != name and later.startswith(name) for i, name in enumerate(names) for later in names[i:]):
            import torch

            values = {**dict.fromkeys(names, torch.tensor(0)), **metrics}
            inserted = r"\1={0[\1]" if auto_insert_metric_name else r"{0[\1]"
            filename = re.sub(r"\{([^:}]*)", inserted, filename).format(values)
        return original(cls, filename, metrics, prefix, auto_insert_metric_name)

    return format_checkpoint_name


PATCHES = (
    Patch(
        name="checkpoint-kept-on-resume",
        title="ModelCheckpoint does not delete the checkpoint that training was resumed from",
        group="correctness",
        affected=(">=2.0.0,<2.1.3",),
        targets=(Target(f"{_CALLBACK}._remove_checkpoint", _remove_checkpoint),),
        witnesses=(f"{_CALLBACK}._save_last_checkpoint",),
        calls=("pytorch.trainer.trainer:Trainer.ckpt_path()",),
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
        name="checkpoint-overwritten",
        title="ModelCheckpoint with a fixed file name keeps to it instead of alternating between two",
        group="correctness",
        affected=(">=2.0.0,<2.1.3",),
        targets=(Target(f"{_CALLBACK}._get_metric_interpolated_filepath_name", _overwriting_own),),
        witnesses=(f"{_CALLBACK}._save_none_monitor_checkpoint",),
        calls=("pytorch.trainer.trainer:Trainer.ckpt_path()",),
        upstream=Upstream(
            pull_requests=(19064,),
            commit="482da0a140",
            fixed_in="2.1.3",
            tests=("tests/tests_pytorch/checkpointing/test_model_checkpoint.py::test_none_monitor_not_alternating",),
        ),
        impact=Impact(
            "ModelCheckpoint(filename='best') without a monitor writes best.ckpt and best-v1.ckpt in turn, and "
            "deletes the other one: after every second save, best.ckpt is not there.",
            ("best.ckpt is missing and best-v1.ckpt is there", "checkpoint alternates between best and best-v1"),
        ),
        note="Only with save_top_k=1, the default: where all files are kept (save_top_k=-1), the official "
        "fix overwrites them, too, and here each save remains. So does a file that the training was resumed from.",
    ),
    Patch(
        name="remote-checkpoint-kept-on-resume",
        title="ModelCheckpoint does not delete the remote checkpoint that training was resumed from",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target(f"{_CALLBACK}._remove_checkpoint", _remove_remote),),
        calls=("pytorch.trainer.trainer:Trainer.ckpt_path()",),
        upstream=Upstream(issues=(21813,)),
        impact=Impact(
            "After a resumed run with checkpoints on s3, gs or another remote file system, the checkpoint that was "
            "passed as ckpt_path is gone, even where it belongs to another run.",
            ("the checkpoint I resumed from was deleted from the bucket", "previous run's checkpoint is deleted"),
        ),
        equivalent_to="save_top_k=-1 in the resumed run, as far as the files of the earlier run are concerned",
        note="Files of the run itself are removed as before, so that save_top_k keeps its meaning.",
        relied_on="Where nothing is to be removed, the same files remain as before. A program that counts on a resumed "
        "run to remove the remote checkpoint that it began with has to delete it itself: it stays.",
        relied_on_tests=(
            "tests/patches/test_remote_checkpoint_kept_on_resume.py::test_they_are_those_that_remain_if_everything_is_kept",
            "tests/patches/test_remote_checkpoint_kept_on_resume.py::test_files_of_the_earlier_run_remain",
        ),
    ),
    Patch(
        name="checkpoint-after-validation",
        title="A checkpoint that is due just before a validation gets that validation's metric",
        group="correctness",
        default=False,
        affected=(">=2.0.0,<=2.6.6",),
        targets=(
            Target(f"{_CALLBACK}.on_train_batch_end", _on_train_batch_end),
            Target(f"{_CALLBACK}.on_validation_end", _on_validation_end),
            Target(f"{_CALLBACK}.on_train_epoch_end", _on_train_epoch_end),
            Target(f"{_CALLBACK}.on_exception", _on_exception, adds=True, before="2.5.3"),
            Target(f"{_CALLBACK}.on_exception", _on_exception, since="2.5.3"),
        ),
        calls=(
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint._monitor_candidates()",
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint._save_last_checkpoint()",
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint._save_topk_checkpoint()",
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint._should_save_on_train_epoch_end()",
            "pytorch.callbacks.model_checkpoint:ModelCheckpoint._should_skip_saving_checkpoint()",
            "pytorch.core.module:LightningModule()",
            "pytorch.core.module:LightningModule.automatic_optimization()",
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop._should_check_val_fx()",
            "pytorch.trainer.connectors.logger_connector.result:_Metadata.forked_name()",
            "pytorch.trainer.trainer:Trainer.global_step()",
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
            "to the step: the file is named and ranked by the previous validation, the best one is the wrong one, "
            "and the first one is not saved.",
            ("best_model_path is not the best checkpoint", "checkpoint has the val_loss of the previous validation"),
        ),
        further_than_upstream="The official fix (2.5.5) waits for the validation only at the last batch of an epoch, "
        "and not with the default save_on_train_epoch_end when validation runs once per epoch. There, and at a "
        "validation within the epoch, 2.6.6 still uses the metric from before. Where no validation follows the last "
        "batch, it drops the save; here it is made, as before.",
        equivalent_to="ModelCheckpoint(monitor=...) without every_n_train_steps, which saves after each validation",
        note="Opt-in: for runs that choose checkpoints by val_loss every N steps, and whose weights are the same "
        "before, during and after a validation. The file is written after the validation that belongs to the step, or "
        "at the end of the epoch, as save_on_train_epoch_end says, and has the state of that moment: whatever changes "
        "weights for a validation (averages, layers that merge in eval mode) is in it, and what the validation did. "
        "Should the validation fail, or be interrupted, it is written then, but not in a job of several ranks, nor if "
        "the process is killed. A save with which no validation coincides is made at once, by the latest metric that "
        "is known. Nothing changes for a subclass that has an on_train_batch_end, on_validation_end or "
        "on_train_epoch_end of its own, where a model or callback has an on_validation_start, "
        "on_validation_epoch_start or on_validation_model_eval, or with validation by the clock (2.6).",
    ),
    Patch(
        name="checkpoint-exists-on-rank-zero",
        title="Only rank zero asks the storage whether a checkpoint exists; no object is broadcast",
        group="crash",
        affected=(">=2.0.0,<2.6.0",),
        targets=(Target(f"{_CALLBACK}.file_exists", _file_exists),),
        calls=(
            "pytorch.strategies.parallel:ParallelStrategy.reduce_boolean_decision()",
            "pytorch.trainer.trainer:Trainer.is_global_zero()",
            "pytorch.trainer.trainer:Trainer.strategy()",
        ),
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
        note="Lightning's own method for a joint decision takes the place of the broadcast: one number is reduced. A "
        "strategy that overrides either is asked as before.",
    ),
    Patch(
        name="checkpoint-name-similar-metrics",
        title="A checkpoint's name can hold two metrics where one's name begins with the other's",
        group="crash",
        affected=(">=2.0.0,<2.0.3",),
        targets=(Target(f"{_CALLBACK}._format_checkpoint_name", _format_checkpoint_name),),
        upstream=Upstream(
            pull_requests=(17610,),
            commit="34069303af",
            fixed_in="2.0.3",
            tests=(
                "tests/tests_pytorch/checkpointing/test_model_checkpoint.py"
                "::test_model_checkpoint_format_checkpoint_name",
            ),
        ),
        impact=Impact(
            "ModelCheckpoint(filename='{epoch}-{epoch_loss:.2f}') ends the training at the first save: the shorter "
            "name is replaced within the longer one, too.",
            ("ValueError: Only '.' or '[' may follow ']' in format field specifier",),
        ),
    ),
)
