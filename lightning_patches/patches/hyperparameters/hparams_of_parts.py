"""A submodule keeps its own hyperparameters if its parent module has the same names."""

from __future__ import annotations

import inspect
import types
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _collect_init_args(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def collect_init_args(
        frame: types.FrameType, path_args: Any, inside: bool = False, classes: tuple[type, ...] = ()
    ) -> Any:
        start = len(path_args)
        collected = original(frame, path_args, inside, classes)
        if inside or not collected[start:]:
            return collected
        # The caller merges these dicts, and later ones win. The arguments of the object itself come first.
        own = levels_of_one_object(frame, classes, upstream_module(namespace, "pytorch.utilities.parsing"))
        names = {name for args in collected[start : start + own] for name in args}
        for args in collected[start + own :]:
            for name in names & args.keys():
                del args[name]
        return collected

    return collect_init_args


def levels_of_one_object(frame: Any, classes: tuple[type, ...], parsing: Any) -> int:
    """Count the calls of ``__init__`` that belong to the first object on the stack."""
    first, count = None, 0
    while frame is not None and frame.f_back is not None:
        found, _ = parsing._get_init_args(frame)
        if "__class__" in inspect.getargvalues(frame).locals and (not classes or isinstance(found, classes)):
            if count and found is not first:
                return count
            first, count = found, count + 1
        elif count:
            return count
        frame = frame.f_back
    return count


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("numbers", "hyperparameters of a submodule whose names its parent module also has"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.utilities.parsing:collect_init_args", _collect_init_args),),
    upstream=Upstream(issues=(19596,)),
    impact=Impact(
        "If a module with save_hyperparameters() is created in the __init__ of another module, and both have "
        "an argument of the same name, the inner module's hparams get the outer module's value.",
        (
            "save_hyperparameters of a submodule has the values of the parent module",
            "hparams of a nested module are overwritten by the outer module",
        ),
    ),
    opt_in="users who make modules with save_hyperparameters() inside of other such modules",
    note="Opt-in because a part can take the whole's value on purpose, and checkpoints hold these "
    "hyperparameters. The inner module's own arguments have the same values as if it were created outside "
    "the outer module's __init__. Other arguments of the outer module are still in its hparams, as "
    "without the patch; the opt-in hparams-of-parts-alone removes them.",
)
