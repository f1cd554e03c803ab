"""Warn when a run that EarlyStopping had stopped trains on after a resume."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, name_and_title


def _on_run_start(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_run_start(self: Any) -> None:
        kind = upstream_module(namespace, "pytorch.callbacks.early_stopping").EarlyStopping
        processed = self.epoch_progress.current.processed
        stopping = [callback for callback in self.trainer.callbacks if isinstance(callback, kind)]
        has_stopped = any(
            0 < one.patience <= one.wait_count or 0 < one.stopped_epoch >= processed - 1 for one in stopping
        )
        if has_stopped and self.trainer.ckpt_path is not None and self._can_stop_early:
            notices.warn_once(
                "early-stopped-resumed",
                "EarlyStopping had stopped the run that this one resumes, but the checkpoint does not hold that: it "
                "trains on until EarlyStopping stops it again. If you don't want that, do not resume a run whose "
                "stopped_epoch is set.",
            )
        original(self)

    return on_run_start


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.3.0",
    group="correctness",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.loops.fit_loop:_FitLoop.on_run_start", _on_run_start),),
    impact=Impact(
        "A run that EarlyStopping had stopped trains on when it is resumed, at least for an epoch.",
        ("a run that was stopped early trains on after resuming",),
    ),
    after=("warn-epoch-start-on-resume", "warn-pretrained-in-eval"),
    note="This patch fixes nothing: it warns once, when training starts. Equivalent to the same program, since one may "
    "resume such a run on purpose.",
)
