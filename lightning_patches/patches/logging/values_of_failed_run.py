"""What was logged before an error doesn't count in the next run."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops._way_out import after_stage, module_of

_LEFT = "_metrics_of_failed_run"
"""Attribute of a module whose run failed: the metrics that were logged since their last reset, by stage."""


def _loops(trainer: Any) -> Iterator[tuple[str, Any]]:
    yield "fit", trainer.fit_loop.epoch_loop
    yield "validate", trainer.fit_loop.epoch_loop.val_loop
    yield "validate", trainer.validate_loop
    yield "test", trainer.test_loop


def _is_left(item: Any) -> bool:
    return not getattr(item, "has_reset", True)  # a dict of values in 1.x has none


def _note(trainer: Any) -> None:
    left = vars(trainer.lightning_module).setdefault(_LEFT, {})
    for stage, loop in _loops(trainer):
        items = filter(_is_left, loop._results.values())
        left.setdefault(stage, []).extend(item.value for item in items if not item.is_tensor)


def _reset(loop: Any, stage: str) -> None:
    results: Any = getattr(loop, "_results", {})
    if any(map(_is_left, results.values())):
        results.reset()
    module = module_of(loop.trainer)
    left: dict[str, list[Any]] = {} if module is None else vars(module).get(_LEFT, {})
    for metric in left.pop(stage, ()):
        metric.reset()


def _fit(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def on_run_start(self: Any, *args: Any, **kwargs: Any) -> Any:
        _reset(self.epoch_loop, "fit")
        return original(self, *args, **kwargs)

    return on_run_start


def _evaluation(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def on_run_start(self: Any, *args: Any, **kwargs: Any) -> Any:
        _reset(self, "test" if self.trainer.testing else "validate")
        return original(self, *args, **kwargs)

    return on_run_start


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "metrics of the run after one that ended in an error"),
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.trainer:Trainer._run_stage", after_stage(_note)),
        Target("pytorch.loops.fit_loop:_FitLoop.on_run_start", _fit, since="2.0.0"),
        Target("pytorch.loops.fit_loop:FitLoop.on_run_start", _fit, before="2.0.0"),
        Target("pytorch.loops.evaluation_loop:_EvaluationLoop.on_run_start", _evaluation, since="2.0.0"),
        Target("pytorch.loops.dataloader.evaluation_loop:EvaluationLoop.on_run_start", _evaluation, before="2.0.0"),
    ),
    impact=Impact(
        "After an error or Ctrl+C in a validation, test or epoch, the next one also counts the batches of the failed "
        "one: logged values in the next fit of the Trainer (2.1.0 and later), and torchmetrics in any Trainer.",
        (
            "metrics include the batches of a validation that failed",
            "torchmetrics is not reset after an exception or KeyboardInterrupt",
        ),
        would_tell="that an earlier validation, test or epoch of the same module ended in an error",
    ),
    after=(
        "accumulation-across-validation",
        "metrics-after-inference",
        "swa-after-error",
        "modes-after-error",
        "weight-averaging-after-error",
        "warn-pretrained-in-eval",
    ),
    note="Values are reset when the next run of the same kind starts, so that the program can read them until then. "
    "Only metrics that the failed run logged are reset.",
)
