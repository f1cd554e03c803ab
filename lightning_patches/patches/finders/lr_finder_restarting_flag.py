"""No validation runs at step 0 after the learning rate finder."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _clear_restarting(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _lr_find(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        finder = original(trainer, *args, **kwargs)
        if finder is not None:
            # Lightning resets only the fit loop's flag, which is computed as True in a run with max_steps.
            trainer.fit_loop.epoch_loop.restarting = False
        return finder

    return _lr_find


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "metrics and random numbers, because there is no validation at step 0"),
    affected=(">=1.8.4,<2.3.0",),
    targets=(
        Target("pytorch.tuner.lr_finder:_lr_find", _clear_restarting, since="2.0.0"),
        Target("pytorch.tuner.lr_finder:lr_find", _clear_restarting, before="2.0.0"),
    ),
    upstream=Upstream(
        issues=(19818,),
        pull_requests=(19819,),
        commit="06ea3a0571",
        fixed_in="2.3.0",
        tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_callback_restarting",),
    ),
    impact=Impact(
        "With the LearningRateFinder callback, a run with max_steps starts like a resumed run, with a full "
        "validation before its first step.",
        ("validation runs at step 0 after the learning rate finder",),
    ),
    around=(
        "lr-finder-applies-lr",
        "lr-finder-train-loader",
        "lr-finder-val-loader",
        "tuner-cleanup-on-error",
        "tuner-temporary-checkpoint",
    ),
)
