"""Training uses the learning rate that the learning rate finder set."""

import inspect
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.finders import _tuned


def _apply_suggestion(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def _lr_find(trainer: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        finder = original(trainer, model, *args, **kwargs)
        options = signature.bind(trainer, model, *args, **kwargs).arguments
        if finder is None or not options.get("update_attr") or finder._optimal_idx is None:
            return finder
        # The finder computed, logged and set the suggestion, and then restored the initial state from the checkpoint.
        learning_rate = finder.results["lr"][finder._optimal_idx]
        name = options.get("attr_name") or getattr(trainer, "auto_lr_find", "")  # 2.x, 1.x
        names = (name,) if name and isinstance(name, str) else ("lr", "learning_rate")
        for holder, name, current in list(_tuned.places(trainer, names)):
            if type(current) is not float or current != learning_rate:
                _tuned.put(holder, name, learning_rate)
        groups = [group for optimizer in trainer.optimizers for group in optimizer.param_groups]
        groups = [group for group in groups if group.get("lr") is not None]  # some optimizers have no lr
        rates = {float(group["lr"]) for group in groups}
        for group in groups:
            group["lr"] = learning_rate
        # In Tuner.lr_find, fit ends here. The next fit creates new optimizers, with their own rates for each group.
        to_be_trained = not any(getattr(callback, "_early_exit", False) for callback in trainer.callbacks)
        if len(rates) > 1 and to_be_trained:
            notices.warn_once(
                "lr-finder-applies-lr",
                f"The learning rate finder has set all parameter groups to {learning_rate:g}, as from Lightning 2.5.4 "
                f"on; they had {', '.join(f'{rate:g}' for rate in sorted(rates))}. To keep different "
                "rates, call Tuner.lr_find before fit, or disable the patch: LIGHTNING_PATCHES=-lr-finder-applies-lr.",
            )
        return finder

    return _lr_find


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "training uses the learning rate that was found"),
    affected=(">=1.8.0,<2.5.4",),
    targets=(
        Target("pytorch.tuner.lr_finder:_lr_find", _apply_suggestion, since="2.0.0"),
        Target("pytorch.tuner.lr_finder:lr_find", _apply_suggestion, before="2.0.0"),
    ),
    upstream=Upstream(
        pull_requests=(21068,),
        commit="3ed9d4edb7",
        fixed_in="2.5.4",
        tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_callback_applies_lr_after_restore",),
    ),
    impact=Impact(
        "With the LearningRateFinder callback, Lightning prints 'Learning rate set to' and sets the model's "
        "attribute, but the optimizer trains with the old learning rate.",
        ("Learning rate set to", "the optimizer does not use the suggested learning rate"),
    ),
    note="As in the official releases, parameter groups with different rates all get the rate that was found, "
    "and the patch warns. To keep their ratio, call Tuner.lr_find before fit. A scheduler that computes "
    "from its own base rate (LambdaLR, OneCycleLR) returns to that rate at its first step.",
    after=("lr-finder-train-loader",),
    around=("tuner-cleanup-on-error", "tuner-temporary-checkpoint"),
)
