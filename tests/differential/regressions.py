"""Bugs that are planted in existing patches. The differential test must find each, and name its patch."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable

REGRESSIONS: dict[str, tuple[str, str, Callable[..., Any]]] = {}
"""By its name: the patch, its target, and the function that is put around the replacement."""


def regression(patch: str, target: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        REGRESSIONS[function.__name__] = patch, target, function
        return function

    return keep


def plant(name: str) -> None:
    """Add the bug to the patch from the next activation on."""
    from lightning_patches import patches

    patch, location, around = REGRESSIONS[name]
    record = patches.find(patch)[0]
    home = importlib.import_module(next(t.build.__module__ for t in record.targets))

    def targets() -> Any:
        for target in record.targets:
            yield target if target.attribute != location else target._replace(build=_broken(target.build, around))

    home.PATCH = record._replace(targets=tuple(targets()))  # type: ignore[attr-defined]


def _broken(build: Any, around: Callable[..., Any]) -> Callable[..., Any]:
    def built(original: Any, namespace: str) -> Any:
        replacement = build(original, namespace)

        @functools.wraps(replacement)
        def broken(*arguments: Any, **named: Any) -> Any:
            return around(replacement, *arguments, **named)

        return broken

    return built


@regression("hook-calls", "_call_callback_hooks")
def calls_a_hook_twice(replacement: Any, trainer: Any, hook_name: str, *arguments: Any, **named: Any) -> None:
    replacement(trainer, hook_name, *arguments, **named)
    if hook_name == "on_train_epoch_end":
        replacement(trainer, hook_name, *arguments, **named)


@regression("hook-calls", "_call_lightning_module_hook")
def changes_an_argument(replacement: Any, trainer: Any, hook_name: str, *arguments: Any, **named: Any) -> Any:
    if hook_name == "on_train_batch_end":
        *others, batch_idx = arguments
        arguments = (*others, batch_idx + 1)
    return replacement(trainer, hook_name, *arguments, **named)


@regression("own-checkpoint-load", "_atomic_save")
def loses_a_file(replacement: Any, checkpoint: Any, filepath: Any) -> None:
    if not str(filepath).endswith("last.ckpt"):
        replacement(checkpoint, filepath)


@regression("plateau-waits-for-validation", "_TrainingEpochLoop._update_learning_rates")
def changes_a_weight(replacement: Any, loop: Any, *arguments: Any, **named: Any) -> None:
    """Change one weight by one ten-millionth."""
    replacement(loop, *arguments, **named)
    next(iter(loop.trainer.lightning_module.parameters())).data.mul_(1 + 2**-23)


@regression("plateau-waits-for-validation", "_TrainingEpochLoop._update_learning_rates")
def reads_a_property(replacement: Any, loop: Any, *arguments: Any, **named: Any) -> None:
    replacement(loop, *arguments, **named)
    loop.trainer.callback_metrics  # noqa: B018
