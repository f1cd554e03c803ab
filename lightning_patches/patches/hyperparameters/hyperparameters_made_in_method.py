"""A module that is created in a method of another module can save its hyperparameters."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


def _get_init_args(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_init_args(frame: Any) -> Any:
        try:
            return original(frame)
        except KeyError:  # it looks up the arguments of __init__ in another method
            if frame.f_code.co_name == "__init__":
                raise
            return None, {}

    return _get_init_args


PATCH = Patch(
    *name_and_title(__name__, __doc__),
    added="0.2.0",
    group="crash",
    affected=(">=1.9.4,<2.6.0",),
    targets=(Target("pytorch.utilities.parsing:_get_init_args", _get_init_args),),
    upstream=Upstream(
        pull_requests=(21227,),
        commit="e5a616f31a",
        fixed_in="2.6.0",
        tests=("tests/tests_pytorch/models/test_hparams.py::test_collect_init_arguments_in_other_methods",),
    ),
    impact=Impact(
        "save_hyperparameters raises a KeyError with the name of an argument of another module's __init__, if a "
        "method of that module that calls super() creates this module.",
        ("in _get_init_args", "KeyError: in save_hyperparameters"),
        error="KeyError: '...'",
    ),
    note="The official fix ignores all methods but __init__. This patch still reads a method that has variables of "
    "the same names, so that the saved hyperparameters of working programs don't change.",
)
