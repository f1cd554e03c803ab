"""``pytorch/tuner/lr_finder.py``: what the learning rate finder leaves behind for the training that follows it.

Each patch is one layer around ``_lr_find`` and puts one thing right after a successful search; they are layered in
the order in which the official releases do the same work.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Optional

from lightning_patches import _runtime
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_LR_FINDER = "pytorch.tuner.lr_finder"
_TESTS = "tests/tests_pytorch/tuner/test_lr_finder.py"


def _clear_restarting(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _lr_find(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        finder = original(trainer, *args, **kwargs)
        if finder is not None:
            # The fit loop cannot be told in a run that is limited by steps: its flag is True by definition there.
            trainer.fit_loop.epoch_loop.restarting = False
        return finder

    return _lr_find


def _drop_val_loader(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _lr_find(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        finder = original(trainer, *args, **kwargs)
        if finder is not None:
            trainer.fit_loop.epoch_loop.val_loop._combined_loader = None
        return finder

    return _lr_find


def _renew_train_loader(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _lr_find(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        finder = original(trainer, *args, **kwargs)
        if finder is not None:
            # Here and not when the fit loop starts: the finder runs with the random state isolated, and the order
            # in which a shuffled epoch 0 comes depends on where its iterator is made.
            trainer.fit_loop._combined_loader = None
            trainer.fit_loop.setup_data()
        return finder

    return _lr_find


def _apply_suggestion(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def _lr_find(trainer: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        finder = original(trainer, model, *args, **kwargs)
        options = signature.bind(trainer, model, *args, **kwargs).arguments
        if finder is None or not options.get("update_attr") or finder._optimal_idx is None:
            return finder
        # The suggestion was computed, announced and set before the initial state came back from the checkpoint.
        learning_rate = finder.results["lr"][finder._optimal_idx]
        attribute = upstream_module(namespace, _LR_FINDER)._determine_lr_attr_name(model, options.get("attr_name", ""))
        parsing = upstream_module(namespace, "pytorch.utilities.parsing")
        parsing.lightning_setattr(model, attribute, learning_rate)
        groups = [group for optimizer in trainer.optimizers for group in optimizer.param_groups]
        rates = {float(group["lr"]) for group in groups}
        for group in groups:
            group["lr"] = learning_rate
        # Tuner.lr_find ends its fit here: the next one makes its optimizers anew, each group with its own rate.
        to_be_trained = not any(getattr(callback, "_early_exit", False) for callback in trainer.callbacks)
        if len(rates) > 1 and to_be_trained:
            _runtime.warn_once(
                "lr-finder-applies-lr",
                f"The learning rate finder has set all parameter groups to {learning_rate:g}, as from Lightning 2.5.4 "
                f"on; they had {', '.join(f'{rate:g}' for rate in sorted(rates))}. To keep them apart, let "
                "Tuner.lr_find search before the fit, or switch this off: LIGHTNING_PATCHES=-lr-finder-applies-lr.",
            )
        return finder

    return _lr_find


def _suggestion(original: Callable[..., Optional[float]], namespace: str) -> Callable[..., Optional[float]]:
    def suggestion(self: Any, skip_begin: int = 10, skip_end: int = 1) -> Optional[float]:
        import torch

        losses = torch.tensor(self.results["loss"][skip_begin:-skip_end])
        usable = torch.isfinite(losses).nonzero().flatten()
        if len(usable) < 2:
            return original(self, skip_begin, skip_end)  # which says that these are too few
        rates = torch.tensor(self.results["lr"][skip_begin:-skip_end])
        (slopes,) = torch.gradient(losses[usable], spacing=[rates[usable]])
        self._optimal_idx = skip_begin + int(usable[slopes.argmin()])
        best: float = self.results["lr"][self._optimal_idx]
        return best

    return suggestion


PATCHES = (
    Patch(
        name="lr-finder-restarting-flag",
        title="No validation at step 0 after the learning rate finder",
        group="correctness",
        affected=(">=2.0.0,<2.3.0",),
        targets=(Target(f"{_LR_FINDER}:_lr_find", _clear_restarting),),
        calls=("pytorch.loops.loop:_Loop.restarting()",),
        upstream=Upstream(
            issues=(19818,),
            pull_requests=(19819,),
            commit="06ea3a0571",
            fixed_in="2.3.0",
            tests=(f"{_TESTS}::test_lr_finder_callback_restarting",),
        ),
        impact=Impact(
            "With the LearningRateFinder callback, a run limited by max_steps starts as if it were resumed, with a "
            "whole validation before its first step.",
            ("validation runs at step 0 after the learning rate finder",),
        ),
    ),
    Patch(
        name="lr-finder-val-loader",
        title="Validation after the learning rate finder uses all of its batches",
        group="correctness",
        affected=(">=2.0.0,<2.0.3",),
        targets=(Target(f"{_LR_FINDER}:_lr_find", _drop_val_loader),),
        upstream=Upstream(
            pull_requests=(17636,),
            commit="2ce975882d",
            fixed_in="2.0.3",
            tests=(f"{_TESTS}::test_lr_finder_callback_val_batches",),
        ),
        impact=Impact(
            "With the LearningRateFinder callback, every validation of the training is cut to the finder's number of "
            "steps.",
            ("validation stops after num_training_steps batches",),
        ),
    ),
    Patch(
        name="lr-finder-train-loader",
        title="The learning rate finder takes no batches away from epoch 0",
        group="correctness",
        affected=(">=2.1.0,<2.5.3",),
        targets=(Target(f"{_LR_FINDER}:_lr_find", _renew_train_loader),),
        calls=("pytorch.loops.fit_loop:_FitLoop.setup_data()",),
        upstream=Upstream(
            pull_requests=(21056,),
            commit="2676332eac",
            fixed_in="2.5.3",
            tests=(f"{_TESTS}::test_lr_finder_with_early_stopping",),
        ),
        impact=Impact(
            "With the LearningRateFinder callback, epoch 0 goes on where the finder's trial stopped: it misses the "
            "batches of the trial, and ends without a validation.",
            (
                "the first epoch after the learning rate finder is too short",
                "no validation in the first epoch after the learning rate finder",
            ),
        ),
    ),
    Patch(
        name="lr-finder-applies-lr",
        title="Training uses the learning rate that the learning rate finder set",
        group="correctness",
        affected=(">=2.0.0,<2.5.4",),
        targets=(Target(f"{_LR_FINDER}:_lr_find", _apply_suggestion),),
        calls=(
            "pytorch.trainer.trainer:Trainer.optimizers()",
            "pytorch.tuner.lr_finder:_determine_lr_attr_name()",
            "pytorch.utilities.parsing:lightning_setattr()",
        ),
        upstream=Upstream(
            pull_requests=(21068,),
            commit="3ed9d4edb7",
            fixed_in="2.5.4",
            tests=(f"{_TESTS}::test_lr_finder_callback_applies_lr_after_restore",),
        ),
        impact=Impact(
            "With the LearningRateFinder callback, 'Learning rate set to' is announced and the model's attribute is "
            "set, but the optimizer trains with the old learning rate.",
            ("Learning rate set to", "the optimizer does not use the suggested learning rate"),
        ),
        note="As in the official releases, parameter groups with rates of their own all get the one that was found; a "
        "warning says so. The search itself runs with one rate for all, and such runs are to come out as with "
        "2.5.4: so the ratio of the rates is not kept. With Tuner.lr_find before the fit it is. A scheduler that "
        "computes from its own base rate (LambdaLR, OneCycleLR) returns to that rate at its first step.",
    ),
    Patch(
        name="lr-finder-slope",
        title="The learning rate finder looks for the steepest descent per learning rate, not per step",
        group="correctness",
        affected=(">=2.0.0,<2.5.3",),
        targets=(Target("pytorch.tuner.lr_finder:_LRFinder.suggestion", _suggestion),),
        upstream=Upstream(
            pull_requests=(21055,),
            commit="105bb20e48",
            fixed_in="2.5.3",
            tests=(
                f"{_TESTS}::test_gradient_correctness",
                f"{_TESTS}::test_exponential_vs_linear_mode_gradient_difference",
            ),
        ),
        impact=Impact(
            "In its default exponential mode, the learning rate finder suggests the point at which the loss falls most "
            "from one trial to the next, not where it falls most for the change of the learning rate.",
            ("lr_find suggests a learning rate that is too large",),
        ),
        # Which learning rate is a good one is a matter of taste, and tuned configurations depend on what this release
        # suggests. The attribute that 2.5.3 renames at the same time keeps its name.
        default=False,
        note="Opt-in, because it suggests other learning rates than the release does without it: in exponential mode "
        "usually much smaller ones.",
    ),
)
