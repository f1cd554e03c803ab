"""save_hyperparameters saves the arguments of mixin classes."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _collect_init_args(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def collect_init_args(
        frame: Any, path_args: list[Any], inside: bool = False, classes: tuple[type, ...] = ()
    ) -> list[Any]:
        if not _is_of_mixin(frame, classes):
            return original(frame, path_args, inside, classes)  # type: ignore[no-any-return]
        parsing = upstream_module(namespace, "pytorch.utilities.parsing")
        path_args.append(parsing.get_init_args(frame))
        return parsing.collect_init_args(frame.f_back, path_args, True, classes)  # type: ignore[no-any-return]

    return collect_init_args


def _is_of_mixin(frame: Any, classes: tuple[type, ...]) -> bool:
    """True in the __init__ of a class that is not one of these, for an object that is an instance of one."""
    names = inspect.getargvalues(frame)
    owner = names.locals.get("__class__")
    return (
        frame.f_back is not None
        and frame.f_code.co_name == "__init__"
        and bool(classes and names.args)
        and isinstance(owner, type)
        and not issubclass(owner, classes)
        and isinstance(names.locals.get(names.args[0]), classes)
    )


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("files", "the hyperparameters that are saved"),
    affected=(">=1.8.0,<1.9.1",),
    targets=(Target("pytorch.utilities.parsing:collect_init_args", _collect_init_args),),
    upstream=Upstream(pull_requests=(16369,), fixed_in="1.9.1"),
    impact=Impact(
        "If a mixin that is not a LightningModule calls save_hyperparameters, or is between a module and its base "
        "class, its arguments and those of the module are not saved: load_from_checkpoint uses the defaults.",
        ("save_hyperparameters in a mixin saves nothing", "hparams is empty with a mixin class"),
    ),
    opt_in="users who save the hyperparameters of modules with mixin classes, on releases below 1.9.1",
    signs=("save_hyperparameters mixin",),
    note="Opt-in because hparams, and with it the log and the checkpoint, get more names.",
)
