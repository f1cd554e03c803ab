"""``pytorch/callbacks/weight_averaging.py``: averaged weights, before there are any."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.weight_averaging:WeightAveraging"


def _is_empty(callback: Any) -> bool:
    """Whether nothing was averaged yet: the average model still holds the weights from before the training."""
    average = callback._average_model
    return average is not None and int(average.n_averaged) == 0


def _with_trained_weights(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    # What the hook does is still done, since a subclass may have overridden it: equal weights can be swapped or copied.
    def hook(self: Any, trainer: Any, pl_module: Any) -> None:
        if _is_empty(self):
            self._average_model.update_parameters(pl_module)  # the first update copies
            self._average_model.n_averaged.zero_()
        original(self, trainer, pl_module)

    return hook


def _on_save_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_save_checkpoint(self: Any, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        original(self, trainer, pl_module, checkpoint)
        if _is_empty(self):
            checkpoint["state_dict"] = checkpoint["current_model_state"]

    return on_save_checkpoint


PATCHES = (
    Patch(
        name="weight-averaging-before-start",
        title="WeightAveraging leaves the trained weights alone until its first average",
        group="correctness",
        affected=(">=2.6.0,<=2.6.6",),
        targets=(
            Target(f"{_CALLBACK}.on_train_end", _with_trained_weights),
            Target(f"{_CALLBACK}.on_validation_epoch_start", _with_trained_weights),
            Target(f"{_CALLBACK}.on_validation_epoch_end", _with_trained_weights),
            Target(f"{_CALLBACK}.on_save_checkpoint", _on_save_checkpoint),
        ),
        upstream=Upstream(issues=(21724,), pull_requests=(21732, 21754)),
        impact=Impact(
            "With WeightAveraging or EMAWeightAveraging and a later start, every validation and checkpoint before that "
            "start has the initial weights, and a run that ends before it ends with them: all training is lost.",
            (
                "validation loss does not change with WeightAveraging",
                "initial weights after training with EMAWeightAveraging",
            ),
        ),
        equivalent_to="the same training without the callback, as long as nothing is averaged",
        relied_on="An average from the first step on, and what follows a later start, are as before. Only what is "
        "validated, saved and kept before the start changes, from the initial weights to the trained ones. A subclass "
        "that overrides `_swap_models` or `_copy_average_to_current` sees every call.",
        relied_on_tests=(
            "tests/patches/test_weight_averaging_before_start.py::test_an_average_from_the_first_step_on_is_left_alone",
            "tests/patches/test_weight_averaging_before_start.py::test_the_average_is_used_from_its_start_on",
            "tests/patches/test_weight_averaging_before_start.py::test_a_subclass_sees_every_call",
        ),
    ),
)
