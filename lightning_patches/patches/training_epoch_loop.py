"""``pytorch/loops/training_epoch_loop.py``: the loop over the batches of one training epoch."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_EPOCH_LOOP = "pytorch.loops.training_epoch_loop:_TrainingEpochLoop"
_RESUMING = "_resuming_from_checkpoint"


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        setattr(self, _RESUMING, True)

    return load_state_dict


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any, data_fetcher: Any) -> None:
        resuming = vars(self.trainer.fit_loop).pop(_RESUMING, False)
        if not resuming or self._restarting or not _is_unused(data_fetcher):
            original(self, data_fetcher)
            return
        # The fit loop has made the iterator of this epoch. The original makes another one in every epoch but the
        # first, unless it goes on in the middle of one.
        self._restarting = True
        try:
            original(self, data_fetcher)
        finally:
            self._restarting = False

    return on_run_start


def _is_unused(data_fetcher: Any) -> bool:
    """Whether the training has not taken a batch from it yet; a fetcher without a length loads one ahead."""
    return bool(data_fetcher.fetched == len(getattr(data_fetcher, "batches", ())))


def _advance(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def advance(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except StopIteration:
            progress = self.batch_progress
            if progress.current.processed > progress.current.started:  # processed without a start: on_..._start said -1
                progress.is_last_batch = True
                self.update_lr_schedulers("step", update_plateau_schedulers=False)
                self.update_lr_schedulers("epoch", update_plateau_schedulers=False)
            raise

    return advance


def _advance_to_the_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def advance(self: Any, data_fetcher: Any) -> None:
        try:
            original(self, data_fetcher)
        except StopIteration:
            if data_fetcher.done:
                _end_short_epoch(self, namespace)
            raise

    return advance


def _end_short_epoch(loop: Any, namespace: str) -> None:
    """What is due after the last batch of an epoch, where the data ended before its length said so."""
    trainer, progress = loop.trainer, loop.batch_progress
    batches, every = progress.current.ready, trainer.val_check_batch
    if loop.restarting or progress.is_last_batch or batches == 0 or progress.current.completed < batches:
        return  # not a batch too few, but an epoch that was known to end, or one that on_train_batch_start ended
    stepped = not loop._should_accumulate()
    progress.is_last_batch = True
    loop.update_lr_schedulers("epoch", update_plateau_schedulers=False)
    due = (
        trainer.check_val_every_n_epoch is not None
        and every is not None  # 2.6: validation by the clock
        and loop._should_check_val_epoch()
        and trainer.num_training_batches % every == 0
        and batches % every != 0  # else it has run after the last batch
    )
    if not due:
        return
    trainer.validating = True
    if stepped:
        loop._batches_that_stepped -= 1  # loggers put it down to the last batch
        if "data_fetcher" in inspect.signature(loop.on_advance_end).parameters:  # before 2.1.0 the validation does it
            call = upstream_module(namespace, "pytorch.trainer.call")
            call._call_lightning_module_hook(trainer, "on_validation_model_zero_grad")
    loop.val_loop.run()
    loop._batches_that_stepped += stepped
    trainer.training = True


def _on_advance_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_advance_end(self: Any, *args: Any) -> None:
        validation = self.val_loop
        run = validation.run

        def run_isolated() -> Any:
            with upstream_module(namespace, "pytorch.utilities.seed").isolate_rng():
                return run()

        # On the instance: the class has a decorated function there, which says nothing of what it decorates.
        validation.run = run_isolated
        try:
            original(self, *args)
        finally:
            del validation.run

    return on_advance_end


_AWAITED = "_plateaus_that_await_validation"


def _update_learning_rates(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def update_learning_rates(self: Any, interval: str, update_plateau_schedulers: bool) -> None:
        strategy = self.trainer.strategy
        configs = strategy.lr_scheduler_configs
        waiting = []
        if update_plateau_schedulers and interval == "epoch":
            waiting = [config for config in configs if _awaits_validation(self, config)]
        if not waiting:
            original(self, interval, update_plateau_schedulers)
            return
        strategy.lr_scheduler_configs = [config for config in configs if not any(config is other for other in waiting)]
        try:
            original(self, interval, update_plateau_schedulers)
        finally:
            strategy.lr_scheduler_configs = configs

    return update_learning_rates


def _awaits_validation(loop: Any, config: Any) -> bool:
    """Whether a scheduler lacks its metric in an epoch without validation, or has lacked it in one before."""
    if not (config.reduce_on_plateau and config.strict and loop.trainer.enable_validation):
        return False
    if loop._should_check_val_epoch() or (loop.trainer.current_epoch + 1) % config.frequency != 0:
        return False
    lacking = vars(loop).setdefault(_AWAITED, [])
    if not any(config is other for other in lacking) and loop._get_monitor_value(config.monitor) is None:
        lacking.append(config)
    return any(config is other for other in lacking)


PATCHES = (
    Patch(
        name="resume-single-iteration",
        title="Resumed training makes one iterator of its data, not two",
        group="correctness",
        affected=(">=2.1.0,<2.5.3",),
        targets=(
            Target("pytorch.loops.loop:_Loop.load_state_dict", _load_state_dict),
            Target(f"{_EPOCH_LOOP}.on_run_start", _on_run_start),
        ),
        upstream=Upstream(
            pull_requests=(20775,),
            commit="25b1343f1c",
            fixed_in="2.5.3",
            tests=("tests/tests_pytorch/loops/test_double_iter_in_iterable_dataset.py::test_resume_training_with",),
        ),
        impact=Impact(
            "When training is resumed from a checkpoint, the first epoch calls iter() on the data twice: worker "
            "processes start twice, and a stream or a stateful dataset loses what the first iterator took.",
            ("iter called twice after resume", "IterableDataset skips samples after resuming from a checkpoint"),
        ),
        note="Where iter() draws random numbers, as a shuffling sampler does, the resumed training sees its data in "
        "another order than without the patch: the order of the fixed releases.",
    ),
    Patch(
        name="skipped-epoch-schedulers",
        title="Learning rate schedulers step in an epoch that on_train_batch_start ends by returning -1",
        group="correctness",
        affected=(">=2.0.0,<2.6.0",),
        targets=(Target(f"{_EPOCH_LOOP}.advance", _advance),),
        calls=("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.update_lr_schedulers()",),
        upstream=Upstream(
            issues=(21296,),
            pull_requests=(21307,),
            commit="f7692a64a5",
            fixed_in="2.6.0",
            tests=(
                "tests/tests_pytorch/loops/test_training_loop.py::test_lr_updated_on_train_batch_start_returns_minus_one",
            ),
        ),
        impact=Impact(
            "When on_train_batch_start returns -1 to skip the rest of an epoch, the learning rate is not decayed at "
            "the end of that epoch.",
            ("learning rate does not change when on_train_batch_start returns -1",),
        ),
    ),
    Patch(
        name="validation-after-short-epoch",
        title="Validation runs even where the training data ends earlier than its length says",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target(f"{_EPOCH_LOOP}.advance", _advance_to_the_end),),
        calls=(
            "pytorch.loops.loop:_Loop.restarting()",
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop._should_accumulate()",
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop._should_check_val_epoch()",
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop.update_lr_schedulers()",
            "pytorch.loops.utilities:_no_grad_context()",
            "pytorch.trainer.call:_call_lightning_module_hook()",
            "pytorch.trainer.trainer:Trainer.num_training_batches()",
            "pytorch.trainer.trainer:Trainer.training()",
            "pytorch.trainer.trainer:Trainer.validating()",
        ),
        upstream=Upstream(issues=(19624, 10290), pull_requests=(21552,)),
        impact=Impact(
            "Where an IterableDataset yields fewer batches than its __len__ says, the validation at the end of the "
            "epoch is left out, the learning rate is not decayed, and nothing says so.",
            ("validation never runs with an IterableDataset", "IterableDataset with __len__ skips validation"),
        ),
        equivalent_to="the same training with a dataset whose __len__ is right",
        note="Gradients that accumulate_grad_batches holds back at the end of such an epoch still wait for the next "
        "one, since the last batch is not known to be the last while it is trained on.",
        relied_on="A program that ends its epochs itself, or validates at other times than their ends, gets no "
        "validation that is not due. One whose dataset's length is too large on purpose, to have no validation, "
        "changes: it has to say limit_val_batches=0.",
        relied_on_tests=("tests/patches/test_validation_after_short_epoch.py::test_no_validation_that_is_not_due",),
    ),
    Patch(
        name="validation-own-randomness",
        title="Validation does not change the order of the training data",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target(f"{_EPOCH_LOOP}.on_advance_end", _on_advance_end),),
        calls=(
            "pytorch.loops.utilities:_no_grad_context()",
            "pytorch.utilities.seed:isolate_rng()",
        ),
        upstream=Upstream(issues=(16827,)),
        impact=Impact(
            "Each validation takes random numbers that the training would have taken, if only one for its loader: with "
            "the same seed the training data comes in another order, and dropout drops other units, as soon as "
            "validation runs more or less often.",
            ("results change with val_check_interval", "validation affects shuffling of training data with a seed"),
        ),
        equivalent_to="a validation DataLoader with a generator of its own",
        default=False,
        note="Opt-in: with the same seed, every run that validates takes another course than without the patch, "
        "and its results cannot be compared to earlier ones. Random numbers of torch, NumPy and Python are put back "
        "after each validation; where nothing else takes any, two validations see the same.",
    ),
    Patch(
        name="plateau-waits-for-validation",
        title="ReduceLROnPlateau waits for validation where that does not run in every epoch",
        group="crash",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(Target(f"{_EPOCH_LOOP}._update_learning_rates", _update_learning_rates),),
        calls=(
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop._get_monitor_value()",
            "pytorch.loops.training_epoch_loop:_TrainingEpochLoop._should_check_val_epoch()",
            "pytorch.trainer.trainer:Trainer.current_epoch()",
            "pytorch.trainer.trainer:Trainer.enable_validation()",
            "pytorch.trainer.trainer:Trainer.strategy()",
        ),
        upstream=Upstream(issues=(10496, 9815), pull_requests=(21266,)),
        impact=Impact(
            "With check_val_every_n_epoch=2 and a ReduceLROnPlateau that monitors a metric of the validation, the "
            "training fails after its first epoch.",
            ("ReduceLROnPlateau conditioned on metric val_loss which is not available",),
        ),
        equivalent_to='"frequency": check_val_every_n_epoch in the dictionary of the scheduler, as the manual on '
        "configure_optimizers asks for",
        note="A scheduler that has waited once is left alone in all epochs without validation. The open pull request "
        "does the same to every ReduceLROnPlateau, even to one that follows a training metric.",
        relied_on="A scheduler that finds its metric in the epoch in which it first looks for it is as before, and so "
        "is one with strict=False. A misspelled metric still ends the training, but at the first validation "
        "rather than at the end of the first epoch; where there is no validation at all, at the end of that epoch.",
        relied_on_tests=(
            "tests/patches/test_plateau_waits_for_validation.py::test_a_scheduler_that_finds_its_metric_is_as_before",
            "tests/patches/test_plateau_waits_for_validation.py::test_a_metric_that_never_comes_is_an_error",
        ),
    ),
)
