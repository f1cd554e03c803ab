"""Values that were logged before an error do not count in the next run."""

from __future__ import annotations

import operator
from typing import Any, Callable, Iterator

from lightning_patches.patch import Effect, Impact, Patch, Target
from lightning_patches.patches.loops._way_out import Notes, after_stage, module_of

_left = Notes()
"""By module: by stage, what a failed run has logged since the last reset, and its states."""


def _loops(trainer: Any) -> Iterator[tuple[str, Any]]:
    yield "fit", trainer.fit_loop.epoch_loop
    yield "validate", trainer.fit_loop.epoch_loop.val_loop
    yield "validate", trainer.validate_loop
    yield "test", trainer.test_loop


def _is_left(item: Any) -> bool:
    return not getattr(item, "has_reset", True)  # a dict of values in 1.x has none


def _states(item: Any) -> Any:
    """Return the states of a logged metric, and the number of its updates."""
    states = {} if item.is_tensor else vars(item.value)
    return [states.get(name) for name in states.get("_defaults", ())], states.get("_update_count")


def _note(trainer: Any) -> None:
    module = module_of(trainer)
    left: dict[str, list[Any]] = _left.find(module) or {}
    for stage, loop in _loops(trainer):
        left.setdefault(stage, []).extend((item, _states(item)) for item in loop._results.values() if _is_left(item))
    _left.add(module, left)


def _reset(loop: Any, stage: str) -> None:
    if not _left:
        return
    own = {id(item) for item in loop._results.values()}
    for item, (states, updates) in _left.find(module_of(loop.trainer), {}).pop(stage, ()):
        now, number = _states(item)
        is_unchanged = number == updates and all(map(operator.is_, now, states))  # not loaded from a checkpoint
        if (id(item) in own and _is_left(item)) if item.is_tensor else is_unchanged:
            item.reset()


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
    "Only metrics that the failed run logged are reset, unless the program has loaded or updated them since.",
)
