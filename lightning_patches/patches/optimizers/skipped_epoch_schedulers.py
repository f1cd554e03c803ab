"""Learning rate schedulers also step in an epoch that on_train_batch_start ends with -1."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _advance(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def advance(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except StopIteration:
            progress = self.batch_progress
            # The batch was processed but not started, so on_train_batch_start returned -1.
            if progress.current.processed > progress.current.started:
                progress.is_last_batch = True
                self.update_lr_schedulers("step", update_plateau_schedulers=False)
                self.update_lr_schedulers("epoch", update_plateau_schedulers=False)
            raise

    return advance


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the learning rate after an epoch that was skipped"),
    affected=(">=1.8.0,<2.6.0",),
    targets=(
        Target("pytorch.loops.training_epoch_loop:_TrainingEpochLoop.advance", _advance, since="2.0.0"),
        Target("pytorch.loops.epoch.training_epoch_loop:TrainingEpochLoop.advance", _advance, before="2.0.0"),
    ),
    upstream=Upstream(
        issues=(21296,),
        pull_requests=(21307,),
        commit="f7692a64a5",
        fixed_in="2.6.0",
        tests=(
            "tests/tests_pytorch/loops/test_training_loop.py::test_lr_updated_on_train_batch_start_returns_minus_one",
        ),
    ),
    impact=Impact(
        "If on_train_batch_start returns -1 to skip the rest of an epoch, the learning rate schedulers do not "
        "step at the end of that epoch: the learning rate is not decayed.",
        ("learning rate does not change when on_train_batch_start returns -1",),
    ),
    opt_in="users who return -1 from on_train_batch_start and don't step the schedulers themselves, on "
    "releases below 2.6.0",
    signs=("on_train_batch_start lr_scheduler",),
    note="Opt-in because a program that steps its schedulers itself after such an epoch works on these "
    "releases. With the patch, as from 2.6.0 on, they would step twice.",
    around=("validation-after-short-epoch",),
    after=("resume-on-last-batch", "mid-epoch-resume", "validation-due-on-resume", "stateful-loader-exact"),
)
