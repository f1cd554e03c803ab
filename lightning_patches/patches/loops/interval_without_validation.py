"""val_check_interval is ignored with limit_val_batches=0."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _setup_data_without_validation(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        trainer = self.trainer
        try:
            original(self)
        except ValueError as error:
            if trainer.limit_val_batches != 0 or not str(error).lstrip().startswith("`val_check_interval`"):
                raise
            # Everything is set up at this point; only a possible warning of the original is missing.
            if trainer.loggers and self.max_batches < trainer.log_every_n_steps and not trainer.fast_dev_run:
                _warn(namespace, "pytorch.loops.fit_loop", trainer, self.max_batches)

    return setup_data


def _reset_without_validation(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def reset_train_dataloader(self: Any, model: Any = None) -> None:
        try:
            original(self, model)
        except ValueError as error:
            is_interval = str(error).startswith("`val_check_interval`")
            if self.limit_val_batches != 0 or not is_interval or self.num_training_batches == 0:
                raise
            if self.loggers and self.num_training_batches < self.log_every_n_steps:
                _warn(namespace, "pytorch.trainer.trainer", self, self.num_training_batches)

    return reset_train_dataloader


def _warn(namespace: str, module: str, trainer: Any, batches: int) -> None:
    """Issue the warning that the original would have issued next."""
    home = upstream_module(namespace, module)
    home.rank_zero_warn(
        f"Trainer(log_every_n_steps={trainer.log_every_n_steps}) is more than the {batches}"
        " batches of a training epoch: an epoch may end without a step being logged.",
        category=home.PossibleUserWarning,
    )


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.6.4",),
    targets=(
        Target("pytorch.loops.fit_loop:_FitLoop.setup_data", _setup_data_without_validation, since="2.0.0"),
        Target("pytorch.trainer.trainer:Trainer.reset_train_dataloader", _reset_without_validation, before="2.0.0"),
    ),
    upstream=Upstream(
        pull_requests=(21560,),
        commit="9dc525c2bf",
        fixed_in="2.6.4",
        tests=("tests/tests_pytorch/loops/test_training_loop.py::test_val_check_interval_with_limit_val_batches_zero",),
    ),
    impact=Impact(
        "Training with limit_val_batches=0 fails before its first batch if val_check_interval is larger than "
        "the number of training batches. The error advises setting limit_val_batches to 0, which is already "
        "set.",
        ("must be less than or equal to the number of the training batches",),
        error="ValueError:  `val_check_interval` (...) must be less than or equal to the number of the "
        "training batches (...).",
    ),
)
