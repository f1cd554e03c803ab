"""Warn when a resumed run will differ from the run without the interruption."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, Iterator, NamedTuple

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.engine.functions import is_lightnings
from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import Notes, is_applied, is_manual, observe, steps_of, stored, warn, warning
from lightning_patches.patches.checkpoints.compiled_names import parts
from lightning_patches.patches.data.stateful_loader_exact import KEY

_CONNECTOR = "pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector"
_SEARCHES = (".lr_find_", ".scale_batch_size_")
"""Prefixes of the checkpoints from which a search for a learning rate or a batch size restores the run."""
_HOOK, _CHECK = "on_train_epoch_start", "_should_check_val_fx"

_unasked = Notes()
"""By checkpoint connector: the path from which fit continues although the program has passed none."""
_resumed = Notes()
"""By fit loop: facts about the checkpoint from which it was restored, until the loop has set up its data."""


class _Run:
    """A fit loop that was restored from a checkpoint and has set up its data, but has not started.

    Args:
        loop: the fit loop.
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        facts: see :data:`_resumed`.
    """

    def __init__(self, loop: Any, namespace: str, facts: dict[str, Any]) -> None:
        self.loop, self.namespace, self.trainer, self.batch = (
            loop,
            namespace,
            loop.trainer,
            loop.epoch_loop.batch_progress,
        )
        self.strategy = self.trainer._accelerator_connector.strategy  # a Trainer subclass may override `strategy`
        self.module = self.strategy._lightning_module
        self.epoch = epoch = loop.epoch_progress.current
        self.count, self.is_last, self.max_steps = self.batch.current.ready, self.batch.is_last_batch, loop.max_steps
        self.progress = self.batch.total if self.trainer.check_val_every_n_epoch is None else self.batch.current
        self.is_within = loop._restarting and epoch.ready == epoch.started == epoch.processed + 1
        self.is_at_batch_end = self.is_within and self.batch.current.completed < self.batch.current.processed
        self.is_after_batch = self.is_within and self.batch.current.completed == self.batch.current.processed
        self.is_ended = epoch.ready == epoch.processed > 0
        self.fetched = getattr(loop._data_fetcher, "batches", ())  # ahead of training
        self.configs = () if is_manual(self.module) else self.strategy.lr_scheduler_configs
        self.states, self.is_exact = facts.get("states"), facts.get("is_exact")
        self.search, self.path = facts.get("search"), facts.get("path")

    @property
    def is_finished(self) -> bool:
        epochs = self.loop.max_epochs
        return bool(self.epoch.processed >= epochs > 0 or steps_of(self.trainer) >= self.max_steps > 0)

    def callbacks(self, *names: str) -> list[Any]:
        module = upstream_module(self.namespace, "pytorch.callbacks")
        kinds = tuple(getattr(module, name) for name in names if hasattr(module, name))
        return [callback for callback in self.trainer.callbacks if issubclass(type(callback), kinds)]

    def tensors(self, kind: str, module: Any) -> Iterator[tuple[str, Any]]:
        for _, part in parts(module):
            yield from ((name, one) for name, one in stored(part, kind, {}).items() if one is not None)

    def validates_at(self, batches: int) -> bool:
        """False if val_check_interval rules out a validation after this number of batches."""
        every = self.trainer.val_check_batch
        return every in (None, float("inf")) or batches % every == 0

    def is_validation_due(self) -> bool:
        """True if Lightning validates after the saved batch."""
        loop = self.loop.epoch_loop
        if (
            not (self.is_last or self.validates_at(self.progress.ready))
            or not is_lightnings(loop, _CHECK)
            or not is_lightnings(loop, "_should_check_val_epoch")
        ):
            return False
        check = loop._should_check_val_fx
        return bool(check(self.loop._data_fetcher) if inspect.signature(check).parameters else check())

    def counts_twice(self) -> bool:
        ends = self.is_last and self.validates_at(self.progress.completed) and self.is_validation_due()
        return bool(self.is_at_batch_end and not ends)

    def repeats_validation(self) -> bool:
        progress = self.loop.epoch_loop.val_loop.batch_progress
        has_ended = progress.is_last_batch and progress.current.completed == progress.current.ready
        return bool(self.is_after_batch and has_ended and self.is_validation_due())

    def steps(self, on_plateau: bool) -> bool:
        """True if a scheduler with interval "epoch" steps at the end of the resumed epoch."""
        due = (
            one for one in self.configs if one.interval == "epoch" and (self.epoch.completed + 1) % one.frequency == 0
        )
        return any(bool(one.reduce_on_plateau) is on_plateau for one in due)

    @property
    def is_reloaded(self) -> bool:
        """True if the epoch begins with new data loaders in the uninterrupted run, too."""
        every = self.trainer.reload_dataloaders_every_n_epochs
        return bool(every) and self.epoch.processed % every == 0

    def reloads_otherwise(self) -> bool:
        every, last, epoch = (
            self.trainer.reload_dataloaders_every_n_epochs,
            self.loop._last_train_dl_reload_epoch,
            self.epoch.processed,
        )
        return bool(every) and (epoch if epoch - last >= every else last) != epoch // every * every

    def has_idle_callback(self) -> bool:
        """True if Lightning would call an on_train_epoch_start of Lightning that has an effect in this epoch."""
        epoch = self.epoch.processed
        schedules = [stored(one, "scheduling") for one in self.callbacks("GradientAccumulationScheduler")]
        factors = [one[max(start for start in one if start <= epoch)] for one in schedules]
        starts = [stored(one, "_swa_epoch_start") for one in self.callbacks("StochasticWeightAveraging")]
        return any(start - 1 <= epoch for start in starts) or any(
            factor != self.trainer.accumulate_grad_batches for factor in factors
        )

    @property
    def hooks(self) -> str:
        """The classes of the program that have an on_train_epoch_start."""
        owners = (self.module, *self.trainer.callbacks)
        return ", ".join(type(one).__name__ for one in owners if not is_lightnings(one, _HOOK))

    def is_rounded(self) -> bool:
        import torch

        is_double = type(self.strategy._precision_plugin).__name__.startswith("DoublePrecision")
        weights = [one.detach() for _, one in self.tensors("_parameters", self.module)] if is_double else []
        return bool(weights) and all(torch.equal(one, one.float().to(one.dtype)) for one in weights)

    def is_frozen_again(self) -> bool:
        finetunes = any(
            stored(one, "previous_backbone_lr") is not None and is_lightnings(one, "finetune_function")
            for one in self.callbacks("BackboneFinetuning")
        )
        backbone = stored(self.module, "_modules")["backbone"] if finetunes else None
        return finetunes and any(not one.requires_grad for _, one in self.tensors("_parameters", backbone))

    def was_stopped(self) -> bool:
        return any(
            0 < stored(one, "patience") <= stored(one, "wait_count")
            or 0 < stored(one, "stopped_epoch") >= self.epoch.processed - 1
            for one in self.callbacks("EarlyStopping")
        ) and bool(self.loop._can_stop_early)


class _Difference(NamedTuple):
    """A difference between a resumed run and the run without the interruption.

    Args:
        fixes: patches that ``exact-resume`` selects. If one of them is applied, there is no warning.
        releases: the releases with the difference: ``_OLD``, ``_NEW`` or ``_ALL``.
        exists: the condition, which reads only Lightning's objects.
        text: a sentence, without the full stop.
    """

    fixes: str
    releases: str
    exists: Callable[[_Run], object]
    text: str


_OLD, _NEW, _ALL = "below 2.5.0", "from 2.5.0 on", "all"
_DIFFERENCES = (
    _Difference(
        "",
        _ALL,
        lambda run: run.path,
        "Fit continues the run of {run.path!r}, although you passed no ckpt_path: with the callback "
        "OnExceptionCheckpoint, fit looks for the last checkpoint. For a new run, remove this file",
    ),
    _Difference(
        "finder-on-resume",
        _ALL,
        lambda run: run.search,
        "The search of {run.search} has dropped the training state of the checkpoint: the run starts at step 0, with "
        "the weights of the checkpoint and a new optimizer",
    ),
    _Difference(
        "mid-epoch-resume",
        _OLD,
        _Run.counts_twice,
        "Batch {run.count} of the epoch counts twice, so the run takes one optimizer step more",
    ),
    _Difference(
        "validation-on-resume",
        _OLD,
        _Run.repeats_validation,
        "The run first repeats the last validation on one batch, whose metrics are wrong",
    ),
    _Difference(
        "resume-on-last-batch",
        _NEW,
        lambda run: run.is_at_batch_end and run.is_last,
        "The validation and on_train_epoch_end of the epoch that has ended are left out, and on_train_epoch_start of "
        "the next one",
    ),
    _Difference(
        "validation-due-on-resume",
        _NEW,
        lambda run: run.is_at_batch_end and not run.is_last and run.is_validation_due(),
        "The validation after batch {run.count} is left out",
    ),
    _Difference(
        "resume-after-last-batch",
        _ALL,
        lambda run: run.is_ended and run.loop._restarting and run.is_last and not run.is_at_batch_end,
        "The end of the last epoch is run again",
    ),
    _Difference(
        "epoch-start-on-resume",
        _NEW,
        lambda run: run.is_within and not run.is_last and run.has_idle_callback(),
        "GradientAccumulationScheduler and StochasticWeightAveraging have no effect until the next epoch",
    ),
    _Difference(
        "",
        _NEW,
        lambda run: run.is_within and not run.is_last and run.hooks,
        "on_train_epoch_start is not called for the rest of the epoch: {run.hooks} may lack what it sets there. If so, "
        "save it in the checkpoint, or also set it in on_train_start",
    ),
    _Difference(
        "resumed-metrics",
        _OLD,
        lambda run: run.loop._restarting and run.steps(on_plateau=False),
        "Schedulers with interval='epoch' step twice for this epoch",
    ),
    _Difference(
        "resumed-metrics",
        _ALL,
        lambda run: (run.loop._restarting or run.epoch.completed < run.epoch.processed) and run.steps(on_plateau=True),
        "ReduceLROnPlateau misses its step for the epoch of the checkpoint",
    ),
    _Difference(
        "resumed-metrics",
        _ALL,
        lambda run: any(one.reduce_on_plateau and one.interval == "step" for one in run.configs),
        "ReduceLROnPlateau(interval='step') has no value of its metric until it is logged again",
    ),
    _Difference(
        "resumed-metrics",
        _NEW,
        lambda run: (
            run.is_after_batch
            and run.is_last
            and any(stored(one, "_check_on_train_epoch_end") for one in run.callbacks("EarlyStopping"))
        ),
        "EarlyStopping has no value of a metric that was logged before the checkpoint",
    ),
    _Difference(
        "reload-on-resume",
        _ALL,
        _Run.reloads_otherwise,
        "reload_dataloaders_every_n_epochs creates data loaders in other epochs",
    ),
    _Difference(
        "stateful-loader-exact",
        _ALL,
        lambda run: run.loop._combined_loader_states_to_load and not run.is_reloaded,
        "The data loaders do not get their state back",
    ),
    _Difference(
        "stateful-loader-exact",
        _ALL,
        lambda run: run.is_within and not run.is_last and run.fetched and run.states and not run.is_exact,
        "A batch that was fetched ahead when the checkpoint was saved is lost",
    ),
    _Difference(
        "finetuning-resumed",
        _ALL,
        _Run.is_frozen_again,
        "BackboneFinetuning had unfrozen the backbone, which is frozen again and not trained",
    ),
    _Difference(
        "pruning-resumed",
        _ALL,
        lambda run: (
            run.epoch.processed > 0
            and run.callbacks("ModelPruning")
            and not any(name.endswith("_mask") for name, _ in run.tensors("_buffers", run.module))
        ),
        "Weights that ModelPruning had pruned are trained again",
    ),
    _Difference("double-precision-restored", _ALL, _Run.is_rounded, "All weights were rounded to float32"),
    _Difference(
        "",
        _ALL,
        _Run.was_stopped,
        "EarlyStopping had stopped the run, but the checkpoint does not hold that: it trains on until EarlyStopping "
        "stops it again",
    ),
)
_DIFFERENCES_OF_FINISHED = (
    _DIFFERENCES[0],
    _Difference(
        "resume-after-last-batch",
        _ALL,
        lambda run: (
            steps_of(run.trainer) >= run.max_steps > 0 and run.is_ended and run.epoch.completed < run.epoch.processed
        ),
        "trainer.current_epoch is one lower than at the end of the first run",
    ),
    _Difference(
        "swa-finished-run weight-averaging-restored",
        _ALL,
        lambda run: any(
            stored(one, "_average_model") is not None
            for one in run.callbacks("StochasticWeightAveraging", "WeightAveraging")
        ),
        "Nothing is left to train, and the run ends with the weights of the last step instead of their average",
    ),
)


def _exists(difference: _Difference, run: _Run) -> bool:
    releases = _NEW if hasattr(run.loop, "_restart_stage") else _OLD
    try:
        return difference.releases in (releases, _ALL) and bool(difference.exists(run))
    except Exception:
        return False


def _parse_ckpt_path(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def after(_: None, path: Any, self: Any, state_fn: Any, ckpt_path: Any, *__: Any, **___: Any) -> None:
        saves = upstream_module(namespace, "pytorch.callbacks.on_exception_checkpoint").OnExceptionCheckpoint
        is_asked = ckpt_path is not None or os.path.basename(path).startswith("hpc_ckpt_")
        if not is_asked and state_fn == "fit" and any(issubclass(type(one), saves) for one in self.trainer.callbacks):
            _unasked.add(self, str(path))

    return observe(original, after=after)


def _restore_loops(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, after=_after_restore)


def _after_restore(_: None, __: None, self: Any) -> None:
    checkpoint = self._loaded_checkpoint
    if checkpoint and self.trainer.state.fn == "fit" and not os.path.basename(self._ckpt_path).startswith(_SEARCHES):
        state = checkpoint.get("loops", {}).get("fit_loop", {}).get("state_dict", {})
        facts = {"states": state.get("combined_loader"), "is_exact": KEY in state, "path": _unasked.take(self)}
        _resumed.add(self.trainer.fit_loop, facts)


def _on_fit_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    return observe(original, before=_is_resumed, after=_after_search)


def _is_resumed(_: Any, trainer: Any, *__: Any, **___: Any) -> bool:
    return bool(trainer._checkpoint_connector._loaded_checkpoint)


def _after_search(was_resumed: bool, _: None, self: Any, trainer: Any, *__: Any, **___: Any) -> None:
    if was_resumed and not trainer._checkpoint_connector._loaded_checkpoint:
        _resumed.add(trainer.fit_loop, {"search": type(self).__name__})


def _setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def after(_: None, __: None, self: Any, *___: Any, **____: Any) -> None:
        facts = _resumed.take(self) if _resumed else None
        if facts is None:
            return
        run = _Run(self, namespace, facts)
        found = [one for one in (_DIFFERENCES_OF_FINISHED if run.is_finished else _DIFFERENCES) if _exists(one, run)]
        left = [one for one in found if not any(is_applied(name, namespace) for name in one.fixes.split())]
        if left:
            remedy = " Set LIGHTNING_PATCHES=default,exact-resume." if any(one.fixes for one in left) else ""
            texts = " ".join(f"{one.text.format(run=run)}." for one in left)
            warn("resumed-run", f"Lightning does not resume this run exactly. {texts}{remedy}")

    return observe(original, after=after)


PATCH = warning(
    Target(f"{_CONNECTOR}._parse_ckpt_path", _parse_ckpt_path),
    Target(f"{_CONNECTOR}.restore_loops", _restore_loops),
    Target("pytorch.callbacks.lr_finder:LearningRateFinder.on_fit_start", _on_fit_start),
    Target("pytorch.callbacks.batch_size_finder:BatchSizeFinder.on_fit_start", _on_fit_start),
    Target("pytorch.loops.fit_loop:_FitLoop.setup_data", _setup_data),
    added="0.1.0",
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(issues=(19827, 18060), pull_requests=(20379,)),
    impact=Impact(
        "A run that is resumed from a checkpoint differs from the run without the interruption: it may train a batch "
        "twice, leave out or repeat a validation, call hooks and step schedulers once more or not at all, and lose the "
        "state of metrics, data loaders and callbacks.",
        (
            "training with OnExceptionCheckpoint starts at a later step without ckpt_path",
            "on_train_epoch_start is not called after resuming in the middle of an epoch",
            "a run that was stopped early trains on after resuming",
        ),
    ),
    after=("best-path-of-rank-zero", "finder-on-resume", "resume-after-last-batch", "reload-starts-once"),
    when=" for each resumed run",
    note="The message lists what will differ. LIGHTNING_PATCHES=default,exact-resume selects the patches that prevent "
    "it; the warning is then about the rest. A program with a workaround gets the warning, too.",
)
