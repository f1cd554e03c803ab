"""A part has no hyperparameters of the object that makes it."""

from __future__ import annotations

import types
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.hyperparameters.hparams_of_parts import levels_of_one_object


def _collect_init_args(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def collect_init_args(
        frame: types.FrameType, path_args: Any, inside: bool = False, classes: tuple[type, ...] = ()
    ) -> Any:
        start = len(path_args)
        collected = original(frame, path_args, inside, classes)
        if not inside and collected[start:]:
            own = levels_of_one_object(frame, classes, upstream_module(namespace, "pytorch.utilities.parsing"))
            del collected[start + own :]
        return collected

    return collect_init_args


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "hyperparameters of a part that another module makes in its __init__"),
    opt_in="users who make modules with save_hyperparameters() inside of other such modules",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.utilities.parsing:collect_init_args", _collect_init_args),),
    upstream=Upstream(issues=(19596,)),
    impact=Impact(
        "If a module with save_hyperparameters() is made in the __init__ of another one, all arguments of that other "
        "one are in the part's hparams, and in its checkpoint.",
        (
            "save_hyperparameters of a submodule also saves the arguments of the parent module",
            "hparams.yaml has hyperparameters of another class",
        ),
    ),
    note="Equivalent to a part that is made outside of the whole's __init__. Off by default, since a program can read "
    "the whole's arguments from the part's hparams.",
    after=("hparams-of-parts",),
)
