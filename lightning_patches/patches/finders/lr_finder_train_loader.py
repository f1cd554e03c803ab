"""The learning rate finder does not consume batches of epoch 0."""

from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _renew_train_loader(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _lr_find(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        is_resumed = bool(trainer._checkpoint_connector._loaded_checkpoint)
        finder = original(trainer, *args, **kwargs)
        if finder is not None and not is_resumed:
            # Create the iterator here and not when the fit loop starts: the finder runs with an isolated random state,
            # and the order of a shuffled epoch 0 depends on the random state with which its iterator is created.
            trainer.fit_loop._combined_loader = None
            trainer.fit_loop.setup_data()
        return finder

    return _lr_find


PATCH = Patch(
    group="correctness",
    changes_results=Effect("order of data", "epoch 0 has all of its batches"),
    affected=(">=2.1.0,<2.5.3",),
    targets=(Target("pytorch.tuner.lr_finder:_lr_find", _renew_train_loader),),
    upstream=Upstream(
        pull_requests=(21056,),
        commit="2676332eac",
        fixed_in="2.5.3",
        tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_with_early_stopping",),
    ),
    impact=Impact(
        "With the LearningRateFinder callback, epoch 0 continues where the finder's trial stopped: it misses "
        "the batches that the trial used, and ends without a validation. EarlyStopping on a validation metric then "
        "ends the run: `Early stopping conditioned on metric ... which is not available`.",
        (
            "the first epoch after the learning rate finder is too short",
            "no validation in the first epoch after the learning rate finder",
        ),
        would_tell="the number of batches in each epoch. It is this bug if the LearningRateFinder "
        "callback is used, and epoch 0 lacks as many batches as its `num_training_steps`",
        consequences=(
            Consequence(
                (
                    "conditioned on metric ... which is not available",
                    "could not find the monitored key in the returned metrics",
                ),
                r"Learning rate set to|\blr_find\b|LearningRateFinder|Finding best initial lr",
                "the learning rate finder ran before and has shortened epoch 0",
                is_sure=True,
                unless=r"(?:of the following|available metrics are): .{0,1000}\bval|metrics: \[[^]]{0,1000}\bval",
            ),
            Consequence(
                (
                    "(ckpt_path='best')` is set but `ModelCheckpoint` is not configured to save the best model",
                    "callback_metrics[ ... KeyError: '...",
                ),
                r"Learning rate set to|\blr_find\b|LearningRateFinder|Finding best initial lr",
                "the learning rate finder ran before, and epoch 0 ended without a validation",
            ),
        ),
    ),
    after=("lr-finder-val-loader",),
    around=("lr-finder-applies-lr", "tuner-cleanup-on-error", "tuner-temporary-checkpoint"),
)
