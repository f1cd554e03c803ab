"""An error or Ctrl+C in an evaluation leaves no module in evaluation mode."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from lightning_patches.patch import Effect, Impact, Patch, Target


def _named(module: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield the names and modules of ``named_modules()``, which is not called, since the program may override it."""
    if module is not None and id(module) not in seen:
        seen.add(id(module))
        yield name, module
        for child, submodule in vars(module).get("_modules", {}).items():
            yield from _named(submodule, f"{name}.{child}" if name else child, seen)


def _restore(trainer: Any) -> None:
    try:
        modes, model = vars(trainer._active_loop)["_module_mode"].mode, trainer.lightning_module
        if not model.training:  # otherwise the error came before the evaluation mode, and `modes` is of an earlier run
            for name, module in _named(model, "", set()):
                if module.training != modes.get(name, module.training):
                    module.training = modes[name]
    except Exception:  # the fit loop, or code of the program, which must not replace the error
        pass


def _run_stage(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _run_stage(self: Any) -> Any:
        try:
            return original(self)
        except BaseException:
            _restore(self)
            raise

    return _run_stage


def _scale_batch_size(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _scale_batch_size(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        # In an evaluation, the trials run the loop that is running, and replace the modes that it restores at its end.
        captured = getattr(trainer._active_loop, "__dict__", {}).get("_module_mode")
        modes = captured and dict(captured.mode)
        try:
            return original(trainer, *args, **kwargs)
        finally:
            if captured:
                captured.mode = modes

    return _scale_batch_size


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "training and predictions after an evaluation that ended in an error"),
    affected=(">=2.2.0,<=2.6.6",),
    targets=(
        Target("pytorch.trainer.trainer:Trainer._run_stage", _run_stage),
        Target("pytorch.tuner.batch_size_scaling:_scale_batch_size", _scale_batch_size),
    ),
    impact=Impact(
        "After an error or Ctrl+C in a validation, test or prediction, or after a batch size search in one, the model "
        "stays in evaluation mode: the next fit trains without dropout and with frozen batch norm.",
        (
            "model stays in eval mode after an exception in validation_step",
            "model is in eval mode after scale_batch_size(method='validate')",
            "no dropout after KeyboardInterrupt in validation",
        ),
        would_tell="that model.training is False after an error in a validation, or after the batch size search",
    ),
    after=("batch-size-finder-loop-state",),
    note="The modes are those before the evaluation, as after an evaluation without an error, and are restored before "
    "on_exception is called. A program that then calls train() or eval() gets the mode that it sets.",
)
