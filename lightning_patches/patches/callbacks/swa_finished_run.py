"""A finished run with StochasticWeightAveraging keeps its average when it is resumed."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target

_CALLBACK = "pytorch.callbacks.stochastic_weight_avg:StochasticWeightAveraging"
_RESTORED = "_restored_by_lightning_patches"


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, state_dict: dict[str, Any]) -> None:
        original(self, state_dict)
        if state_dict.get("average_model_state") is not None:
            vars(self)[_RESTORED] = True

    return load_state_dict


def _on_train_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_end(self: Any, trainer: Any, pl_module: Any) -> None:
        vars(self).pop(_RESTORED, None)
        original(self, trainer, pl_module)

    return on_train_end


def _on_fit_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_end(self: Any, trainer: Any, pl_module: Any) -> None:
        """Called when fit ends. Leaves the average in the model if the resumed run was already finished."""
        original(self, trainer, pl_module)
        is_finished = vars(self).pop(_RESTORED, False)
        last = trainer.fit_loop.epoch_progress.current.processed - 1
        if (
            is_finished
            and not self._model_contains_batch_norm
            and last == self.swa_end
            and self._average_model is not None
        ):
            self.transfer_weights(self._average_model, pl_module)

    return on_fit_end


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a finished run with StochasticWeightAveraging that is resumed"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        Target(f"{_CALLBACK}.load_state_dict", _load_state_dict, stock=("self.on_train_end", "self.transfer_weights")),
        Target(f"{_CALLBACK}.on_train_end", _on_train_end),
        Target(f"{_CALLBACK}.on_fit_end", _on_fit_end, adds=True),
    ),
    impact=Impact(
        "With StochasticWeightAveraging, a run that is resumed from a checkpoint at its last epoch's end has nothing "
        "left to train, and ends with the weights of the last step instead of the average.",
        ("StochasticWeightAveraging: averaged weights are lost when a finished run is resumed",),
    ),
    after=("swa-keeps-trained-weights", "swa-infinite-epochs"),
    opt_in="users who resume finished runs with StochasticWeightAveraging",
    signs=("ckpt_path StochasticWeightAveraging",),
    note="Opt-in because programs copy the average themselves. Subclasses with their own on_train_end or "
    "transfer_weights are unchanged, and so are models with batch norm: their checkpoints already contain "
    "the average. Without the patch, copy callback._average_model to the model.",
)
