"""save_hyperparameters(ignore=...) in a subclass also applies to its base class."""

import sys
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.hyperparameters._ignored import names_in


def _of_base_class(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_hyperparameters(obj: Any, *args: Any, ignore: Any = None, frame: Any = None, **kwargs: Any) -> None:
        frame = frame or sys._getframe(1)  # the arguments are read from the calling frame
        if len(args) != 1 or args[0]:  # the original does nothing if it gets only an empty container
            _drop(obj, ignore)  # before the original warns about modules among them
        original(obj, *args, ignore=ignore, frame=frame, **kwargs)
        if len(args) != 1 or args[0]:
            _drop(obj, ignore)

    return save_hyperparameters


def _drop(obj: Any, ignore: Any) -> None:
    """Remove names from the saved hyperparameters. A configuration object of the user is not changed."""
    for saved in (vars(obj).get("_hparams"), vars(obj).get("_hparams_initial")):
        if isinstance(saved, dict):
            for name in names_in(ignore):
                saved.pop(name, None)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("files", "the hyperparameters that are saved"),
    affected=(">=1.8.0,<2.6.1",),
    targets=(Target("pytorch.utilities.parsing:save_hyperparameters", _of_base_class),),
    upstream=Upstream(
        pull_requests=(21490,),
        commit="14a3902aaf",
        fixed_in="2.6.1",
        tests=("tests/tests_pytorch/models/test_hparams.py::test_hparams_ignore_in_subclass_overrides_base",),
    ),
    impact=Impact(
        "An argument that a subclass ignores is still logged and saved if the base class saves its hyperparameters.",
        ("ignored hyperparameter is in the checkpoint", "ignore has no effect in subclass"),
    ),
    opt_in="users who exclude an argument with save_hyperparameters(ignore=...) and have a base class that saves it",
    signs=("save_hyperparameters ignore",),
    note="Opt-in because self.hparams no longer contains the ignored name, and load_from_checkpoint needs it "
    "as an argument. An OmegaConf object that the program passes is unchanged; the official fix removes "
    "the name from it.",
    after=("dataclass-hparams",),
)
