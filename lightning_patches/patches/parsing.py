"""``pytorch/utilities/parsing.py``: which arguments ``save_hyperparameters`` takes."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_SAVE = "pytorch.utilities.parsing:save_hyperparameters"


def _of_dataclass(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_hyperparameters(obj: Any, *args: Any, ignore: Any = None, frame: Any = None, **kwargs: Any) -> None:
        frame = frame or sys._getframe(1)  # the arguments are read from the frame that calls
        missing: list[str] = []
        if dataclasses.is_dataclass(obj) and kwargs.get("given_hparams") is None:
            others = [field.name for field in dataclasses.fields(obj) if not field.init]
            missing = [name for name in others if name not in args and not hasattr(obj, name)]
            if missing:
                ignore = [*_names(ignore), *(name for name in others if name not in args)]
        # The original reads every field before it drops what is to be ignored.
        vars(obj).update(dict.fromkeys(missing))
        try:
            original(obj, *args, ignore=ignore, frame=frame, **kwargs)
        finally:
            for name in missing:
                vars(obj).pop(name, None)

    return save_hyperparameters


def _of_base_class(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_hyperparameters(obj: Any, *args: Any, ignore: Any = None, frame: Any = None, **kwargs: Any) -> None:
        frame = frame or sys._getframe(1)  # the arguments are read from the frame that calls
        if len(args) != 1 or args[0]:  # with an empty container the original does nothing
            _drop(obj, ignore)  # before it warns of modules among them
        original(obj, *args, ignore=ignore, frame=frame, **kwargs)
        if len(args) != 1 or args[0]:
            _drop(obj, ignore)

    return save_hyperparameters


def _names(ignore: Any) -> list[str]:
    if isinstance(ignore, str):
        return [ignore]
    return [name for name in ignore if isinstance(name, str)] if isinstance(ignore, (list, tuple)) else []


def _drop(obj: Any, ignore: Any) -> None:
    """Take names out of the hyperparameters that are saved so far. A configuration of the user's own is left alone."""
    for saved in (vars(obj).get("_hparams"), vars(obj).get("_hparams_initial")):
        if isinstance(saved, dict):
            for name in _names(ignore):
                saved.pop(name, None)


PATCHES = (
    Patch(
        name="dataclass-hparams",
        title="save_hyperparameters works in a dataclass with fields that its __init__ does not take",
        group="crash",
        affected=(">=2.0.0,<2.5.3",),
        targets=(Target(_SAVE, _of_dataclass),),
        upstream=Upstream(
            pull_requests=(21051,),
            fixed_in="2.5.3",
        ),
        impact=Impact(
            "A LightningModule or datamodule that is a dataclass and has a field(init=False) cannot save its "
            "hyperparameters before that field is set.",
            ("object has no attribute",),
        ),
        note="Where every such field is set beforehand, the affected releases save these fields, too, and still do.",
    ),
    Patch(
        name="hparams-ignored-in-subclass",
        title="save_hyperparameters(ignore=...) in a subclass also applies to what its base class saved",
        group="correctness",
        affected=(">=2.0.0,<2.6.1",),
        targets=(Target(_SAVE, _of_base_class),),
        # Opt-in: a subclass may go on using self.hparams.<name> of an ignored argument, and checkpoints without it
        # need the argument when they are loaded.
        default=False,
        upstream=Upstream(
            pull_requests=(21490,),
            commit="14a3902aaf",
            fixed_in="2.6.1",
            tests=("tests/tests_pytorch/models/test_hparams.py::test_hparams_ignore_in_subclass_overrides_base",),
        ),
        impact=Impact(
            "An argument that a subclass ignores is logged and saved all the same, because the base class saves its "
            "hyperparameters as well.",
            ("ignored hyperparameter is in the checkpoint", "ignore has no effect in subclass"),
        ),
        note="Opt-in: self.hparams no longer has the ignored name, and load_from_checkpoint needs it as an argument. "
        "An OmegaConf object that was passed in is left as it is; the official fix takes the name out of it.",
    ),
)
