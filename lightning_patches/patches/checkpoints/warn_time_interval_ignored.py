"""Warn when ModelCheckpoint ignores train_time_interval."""

import time
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        original(self, trainer, pl_module, *args, **kwargs)
        interval, since = self._train_time_interval, self._last_time_checked
        if interval is None or since is None or time.monotonic() - since < interval.total_seconds():
            return
        if not pl_module.automatic_optimization:
            notices.warn_once(
                "time-interval-ignored",
                "No checkpoint is saved at train_time_interval: with manual optimization, this release of Lightning "
                "ignores it. To save checkpoints, set LIGHTNING_PATCHES=default,manual-optimization-time-interval, or "
                "use ModelCheckpoint(every_n_train_steps=...).",
            )

    return on_train_batch_end


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="correctness",
    affected=(">=2.6.0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_batch_end", _on_train_batch_end),),
    upstream=Upstream(pull_requests=(21699,)),
    impact=Impact(
        "With manual optimization, ModelCheckpoint(train_time_interval=...) saves no checkpoint during training.",
        ("ModelCheckpoint ignores train_time_interval",),
    ),
    note="This patch fixes nothing: it warns once, when the first interval passes without a checkpoint. The "
    "opt-in patch manual-optimization-time-interval fixes the bug.",
    fixed_by=("manual-optimization-time-interval",),
)
