"""A module that is created in a method of another module can save its hyperparameters."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _get_init_args(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _get_init_args(frame: Any) -> Any:
        return _arguments(original, frame, (None, {}))

    return _get_init_args


def _get_arguments_alone(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def get_init_args(frame: Any) -> Any:
        return _arguments(original, frame, {})

    return get_init_args


def _arguments(original: Callable[..., Any], frame: Any, nothing: Any) -> Any:
    try:
        return original(frame)
    except KeyError:  # the original looks up the arguments of __init__ in another method's frame
        if frame.f_code.co_name == "__init__":
            raise
        return nothing


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.6.0",),
    targets=(
        Target("pytorch.utilities.parsing:_get_init_args", _get_init_args, since="1.9.4"),
        Target("pytorch.utilities.parsing:get_init_args", _get_init_args, since="1.9.1", before="1.9.4"),
        Target("pytorch.utilities.parsing:get_init_args", _get_arguments_alone, before="1.9.1"),
    ),
    upstream=Upstream(
        pull_requests=(21227,),
        commit="e5a616f31a",
        fixed_in="2.6.0",
        tests=("tests/tests_pytorch/models/test_hparams.py::test_collect_init_arguments_in_other_methods",),
    ),
    impact=Impact(
        "save_hyperparameters raises a KeyError if a method of another module creates this module and calls "
        "super(). The KeyError names an argument of the other module's __init__.",
        ("in _get_init_args", "KeyError: in save_hyperparameters"),
        error="KeyError: '...'",
    ),
    note="The official fix ignores all methods except __init__. This patch still reads a method that has "
    "variables with the names of all arguments, so that the saved hyperparameters of working programs "
    "don't change.",
)
