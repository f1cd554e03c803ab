"""``pytorch/loops/fit_loop.py``: the loop over the training epochs."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_SETUP_DATA = "pytorch.loops.fit_loop:_FitLoop.setup_data"


def _setup_data_without_validation(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        trainer = self.trainer
        try:
            original(self)
        except ValueError as error:
            if trainer.limit_val_batches != 0 or not str(error).lstrip().startswith("`val_check_interval`"):
                raise
            # All is set up by then; the original would only have one more warning to give.
            if trainer.loggers and self.max_batches < trainer.log_every_n_steps and not trainer.fast_dev_run:
                upstream_module(namespace, "pytorch.loops.fit_loop").rank_zero_warn(
                    f"Trainer(log_every_n_steps={trainer.log_every_n_steps}) is more than the {self.max_batches}"
                    " batches of a training epoch: an epoch may end without a step being logged.",
                    category=upstream_module(namespace, "fabric.utilities.warnings").PossibleUserWarning,
                )

    return setup_data


def _setup_data(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup_data(self: Any) -> None:
        original(self)
        # The original returns at once where the loader was set up before the checkpoint was read.
        self._load_combined_loader_states()

    return setup_data


PATCHES = (
    Patch(
        name="interval-without-validation",
        title="val_check_interval does not matter with limit_val_batches=0",
        group="crash",
        affected=(">=2.0.0,<2.6.4",),
        targets=(Target(_SETUP_DATA, _setup_data_without_validation),),
        calls=(
            "fabric.utilities.warnings:PossibleUserWarning()",
            "pytorch.trainer.trainer:Trainer.loggers()",
        ),
        upstream=Upstream(
            pull_requests=(21560,),
            commit="9dc525c2bf",
            fixed_in="2.6.4",
            tests=(
                "tests/tests_pytorch/loops/test_training_loop.py::test_val_check_interval_with_limit_val_batches_zero",
            ),
        ),
        impact=Impact(
            "Training with limit_val_batches=0 fails before its first batch where val_check_interval is larger than "
            "the number of training batches. The error advises setting limit_val_batches to 0.",
            ("must be less than or equal to the number of the training batches",),
        ),
    ),
    Patch(
        name="stateful-loader-restored",
        title="A stateful DataLoader gets its state back when training is resumed",
        group="correctness",
        affected=(">=2.2.0,<=2.6.6",),
        targets=(Target(_SETUP_DATA, _setup_data),),
        calls=("pytorch.loops.fit_loop:_FitLoop._load_combined_loader_states()",),
        upstream=Upstream(issues=(20550,), pull_requests=(21765, 21770)),
        impact=Impact(
            "Where configure_optimizers reads trainer.estimated_stepping_batches, a resumed training does not give a "
            "stateful DataLoader its state back: it starts over with data that was trained on already.",
            ("load_state_dict of a stateful dataloader is not called on resume",),
        ),
        equivalent_to="the same training whose configure_optimizers does not read estimated_stepping_batches",
        relied_on="A run that gets its state back already, or is not resumed, is as before. A script that gives "
        "the loader its state before the fit, to make up for the bug, is overruled by the state in the checkpoint.",
        relied_on_tests=(
            "tests/patches/test_stateful_loader_restored.py::test_a_training_that_was_right_is_left_alone",
            "tests/patches/test_stateful_loader_restored.py::test_a_state_by_hand_is_overruled_as_without_the_bug",
        ),
    ),
)
