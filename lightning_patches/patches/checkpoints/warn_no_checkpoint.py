"""Warn when ModelCheckpoint has saved nothing since no step was counted."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Target, Upstream
from lightning_patches.patches._warning import observe, steps_of, warn, warning


def _on_run_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def after(_: None, __: None, self: Any) -> None:
        if steps_of(self.trainer) or self.trainer.fast_dev_run:
            return
        batches, epochs = self.epoch_loop.batch_progress.total.completed, self.epoch_progress.total.processed
        kind = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
        for callback in self.trainer.callbacks:
            if type(callback) is kind and _has_missed(callback, epochs, batches):
                warn(
                    "no-checkpoint",
                    f"ModelCheckpoint has saved nothing in {batches} batches, since trainer.global_step is still 0: "
                    "Lightning counts the steps of the optimizers that self.optimizers() returns, and training_step "
                    "stepped none of them. Step those, or call trainer.save_checkpoint.",
                )

    return observe(original, after=after)


def _has_missed(callback: Any, epochs: int, batches: int) -> bool:
    is_due = 0 < callback._every_n_epochs <= epochs or 0 < callback._every_n_train_steps <= batches
    return bool(is_due and (callback.save_top_k != 0 or callback.save_last) and not callback.best_model_path)


PATCH = warning(
    Target("pytorch.loops.fit_loop:_FitLoop.on_run_end", _on_run_end),
    added="0.3.0",
    affected=(">=2.0.0,<=2.6.6",),
    upstream=Upstream(issues=(17281, 17167)),
    impact=Impact(
        "With manual optimization and optimizers that were not taken from self.optimizers(), trainer.global_step stays "
        "0 and ModelCheckpoint saves nothing, without a message.",
        (
            "ModelCheckpoint does not save with automatic_optimization = False",
            "global_step stays 0 in manual optimization",
        ),
    ),
    when=", at the end of fit",
    note="The right usage is to step the optimizers that self.optimizers() returns.",
)
