"""Validation after the learning rate finder uses all of its batches."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _drop_val_loader(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _lr_find(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        finder = original(trainer, *args, **kwargs)
        if finder is not None:
            trainer.fit_loop.epoch_loop.val_loop._combined_loader = None
        return finder

    return _lr_find


def _drop_in_1x(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def lr_find(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        finder = original(trainer, *args, **kwargs)
        if finder is not None:
            trainer.val_dataloaders = None
        return finder

    return lr_find


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "validation uses all of its batches"),
    affected=(">=1.8.0,<2.0.3",),
    targets=(
        Target("pytorch.tuner.lr_finder:_lr_find", _drop_val_loader, since="2.0.0"),
        Target("pytorch.tuner.lr_finder:lr_find", _drop_in_1x, before="2.0.0"),
    ),
    upstream=Upstream(
        pull_requests=(17636,),
        commit="2ce975882d",
        fixed_in="2.0.3",
        tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_callback_val_batches",),
    ),
    impact=Impact(
        "With the LearningRateFinder callback, each validation during training is cut to the finder's number of steps.",
        ("validation stops after num_training_steps batches",),
    ),
    after=("lr-finder-restarting-flag",),
    around=("lr-finder-applies-lr", "tuner-cleanup-on-error", "tuner-temporary-checkpoint"),
)
