"""A resumed run with LearningRateFinder or BatchSizeFinder continues from its checkpoint."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target

_LR_FINDER = "pytorch.callbacks.lr_finder:LearningRateFinder"
_FOUND = "optimal_lr"
"""Attribute of LearningRateFinder, and key of its state: what the search has found."""
_SAVED = ("hyper_parameters", "datamodule_hyper_parameters")


def _is_resumed(callback: Any, trainer: Any) -> bool:
    """True if the trainer has yet to restore the training state of a checkpoint. A search would drop that state.

    Returns False for strategies that load the checkpoint after the search, and for the tuner's own run, which only
    searches.
    """
    loaded = getattr(getattr(trainer, "_checkpoint_connector", None), "_loaded_checkpoint", None)
    return isinstance(loaded, dict) and bool(loaded) and not callback._early_exit


def _skip_lr_search(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_start(self: Any, trainer: Any, pl_module: Any) -> None:
        if not _is_resumed(self, trainer):  # in a resumed run, the optimizer's state has the learning rate
            original(self, trainer, pl_module)

    return on_fit_start


def _state_dict(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def state_dict(self: Any) -> Any:
        state, found = original(self), vars(self).get(_FOUND)
        if found:
            # suggestion() computes _optimal_idx, which is no plain number, again.
            kept = {name: value for name, value in vars(found).items() if name != "_optimal_idx"}
            state = {**state, _FOUND: kept}
        return state

    return state_dict


def _load_state_dict(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def load_state_dict(self: Any, state_dict: Any) -> None:
        original(self, state_dict)
        if _FOUND in state_dict:
            found = upstream_module(namespace, "pytorch.tuner.lr_finder")._LRFinder("linear", 0, 0, 0)
            vars(found).update(state_dict[_FOUND])
            self.optimal_lr = found

    return load_state_dict


def _skip_batch_size_search(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_fit_start(self: Any, trainer: Any, pl_module: Any) -> None:
        if not _is_resumed(self, trainer):
            original(self, trainer, pl_module)
            return
        name, checkpoint = self._batch_arg_name, trainer._checkpoint_connector._loaded_checkpoint
        for saved in (checkpoint.get(key) for key in _SAVED):
            if saved and name in saved:
                upstream_module(namespace, "pytorch.utilities.parsing").lightning_setattr(pl_module, name, saved[name])
                self.optimal_batch_size = saved[name]
                return
        notices.warn_once(
            "finder-on-resume",
            f"BatchSizeFinder does not search when a run is resumed, and the checkpoint has no hyperparameter "
            f"{name!r}: training continues with the current {name}. If the search had found another one, set it before "
            "you resume the run, or call save_hyperparameters() in the model.",
        )

    return on_fit_start


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "a resumed run continues instead of starting again"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"{_LR_FINDER}.on_fit_start", _skip_lr_search, stock=("self",)),
        Target(f"{_LR_FINDER}.state_dict", _state_dict, adds=True, stock=("self",)),
        Target(f"{_LR_FINDER}.load_state_dict", _load_state_dict, adds=True, stock=("self",)),
        Target(
            "pytorch.callbacks.batch_size_finder:BatchSizeFinder.on_fit_start", _skip_batch_size_search, stock=("self",)
        ),
    ),
    impact=Impact(
        "With the callback LearningRateFinder or BatchSizeFinder, fit(ckpt_path=...) starts at epoch 0 and "
        "step 0, with the weights of the checkpoint but a new optimizer and new schedulers, without a warning.",
        (
            "resumed training starts at epoch 0 with LearningRateFinder",
            "ckpt_path is ignored with BatchSizeFinder",
            "LearningRateFinder callback resets global_step when resuming from a checkpoint",
        ),
    ),
    opt_in="users who resume runs with LearningRateFinder or BatchSizeFinder",
    signs=("ckpt_path LearningRateFinder", "ckpt_path BatchSizeFinder"),
    note="Opt-in because programs start a new run from pretrained weights with fit(ckpt_path=...) and a finder. The "
    "finder does not search in a resumed run, because its search runs before the training state is restored, and "
    "the end of the search discards that state. The learning rate that the first run found is in the optimizer's "
    "state, and what its search has found in the callback's, for finder.optimal_lr. The batch size is taken from "
    "the checkpoint's hyperparameters; if it is missing there, the patch warns. Subclasses of the callbacks, and "
    "the Tuner, are unchanged. To start a new run from weights, load them with load_from_checkpoint. Without the "
    "patch, remove the callback in the resumed run, and set the batch size that was found.",
)
