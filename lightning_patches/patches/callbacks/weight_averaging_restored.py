"""test, predict and a resumed run use the averaged weights of a WeightAveraging checkpoint."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_CALLBACK = "pytorch.callbacks.weight_averaging:WeightAveraging"
_AVERAGE, _TRAINED = "state_dict", "current_model_state"
_UNSTARTED = "_average_restored_unstarted"


def _on_load_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_load_checkpoint(self: Any, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        original(self, trainer, pl_module, checkpoint)
        if self._average_model is None or _TRAINED not in checkpoint:
            return
        stage = trainer.state.stage
        if stage in ("test", "predict"):  # a validation swaps the weights itself
            self._copy_average_to_current(pl_module)
        elif stage == "train":
            vars(self)[_UNSTARTED] = True

    return on_load_checkpoint


def _on_train_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_end(self: Any, trainer: Any, pl_module: Any) -> None:
        vars(self).pop(_UNSTARTED, None)
        original(self, trainer, pl_module)

    return on_train_end


def _on_fit_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_end(self: Any, trainer: Any, pl_module: Any) -> None:
        """Called when fit ends. Leaves the average in the model if the resumed run was already finished."""
        original(self, trainer, pl_module)
        if vars(self).pop(_UNSTARTED, False):
            self._copy_average_to_current(pl_module)

    return on_fit_end


def _restore_model(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def restore_model(self: Any) -> None:
        checkpoint = self._loaded_checkpoint
        if not (self.trainer.state.stage == "train" and "averaging_state" in checkpoint and _TRAINED in checkpoint):
            original(self)
            return
        kept = dict(checkpoint[_AVERAGE]), dict(checkpoint[_TRAINED])  # values that are replaced must stay alive
        average, trained = (_seen(state) for state in kept)
        original(self)
        if _seen(checkpoint.get(_TRAINED, {})) == trained:
            checkpoint[_TRAINED] = _with_changes(kept[1], average, checkpoint[_AVERAGE])

    return restore_model


def _seen(state: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the identity and the version of each value. They change when a hook replaces the value or writes to it."""
    return {name: (id(value), getattr(value, "_version", 0)) for name, value in state.items()}


def _with_changes(
    trained: dict[str, Any], before: dict[str, tuple[int, int]], average: dict[str, Any]
) -> dict[str, Any]:
    """Return the trained weights with the changes that a hook made to the average: new names and new values."""
    names, result = {entry: name for name, entry in before.items()}, dict(trained)
    for name, entry in _seen(average).items():
        if before.get(name) == entry:
            continue
        old = names.get(entry)
        result[name] = trained.get(old, average[name]) if old is not None else average[name]
        if old is not None and old not in average:
            result.pop(old, None)
    return result


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "results of test and predict with a checkpoint after fit, and of resumed runs"),
    affected=(">=2.6.0,<=2.6.6",),
    targets=(
        Target(
            f"{_CALLBACK}.on_load_checkpoint",
            _on_load_checkpoint,
            stock=("self.on_train_end", "self._copy_average_to_current"),
        ),
        Target(f"{_CALLBACK}.on_train_end", _on_train_end),
        Target(f"{_CALLBACK}.on_fit_end", _on_fit_end, adds=True),
        Target("pytorch.trainer.connectors.checkpoint_connector:_CheckpointConnector.restore_model", _restore_model),
    ),
    impact=Impact(
        "With WeightAveraging or EMAWeightAveraging, test and predict with ckpt_path='best' after fit use the "
        "weights of the last step instead of the average. If a finished run is resumed, it also ends with "
        "these weights. Changes that on_load_checkpoint makes to the weights of a checkpoint are lost or cause "
        "a missing key.",
        (
            "test after fit with WeightAveraging differs from test with a new Trainer",
            "on_load_checkpoint has no effect with WeightAveraging",
            "averaged weights are lost when a finished run is resumed",
        ),
    ),
    after=("weight-averaging-before-start",),
    opt_in="users who test or resume a checkpoint with WeightAveraging or EMAWeightAveraging",
    signs=("ckpt_path WeightAveraging", "ckpt_path EMAWeightAveraging"),
    note="Opt-in because programs exchange the weights themselves. A hook that changes both "
    "current_model_state and state_dict is unchanged. If the hook computes a value from the average, the "
    "run continues with that value. A parameter that the hook removes is still trained. fit without a "
    "checkpoint is unchanged, and so are subclasses that override how a run ends or how the average is "
    "copied. Without the patch, test the checkpoint with a new Trainer.",
)
