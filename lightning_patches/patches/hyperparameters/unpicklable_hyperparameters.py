"""Hyperparameters that cannot be pickled are omitted, whatever error pickle raises."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _is_picklable(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def is_picklable(obj: Any) -> bool:
        try:
            return original(obj)
        except TypeError:  # raised for a lock or a socket, for example; the original catches only other errors
            return False

    return is_picklable


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.0.1.post0",),
    targets=(Target("pytorch.utilities.parsing:is_picklable", _is_picklable),),
    upstream=Upstream(
        pull_requests=(17270,),
        commit="fd4697c62c",
        fixed_in="2.0.1.post0",
        tests=("tests/tests_pytorch/utilities/test_parsing.py::test_is_picklable",),
    ),
    impact=Impact(
        "fit raises a TypeError if a hyperparameter contains a lock, a socket or a connection, instead of omitting it "
        "with a warning.",
        ("TypeError: cannot pickle '_thread.lock' object",),
        error="TypeError: cannot pickle '_thread.lock' object",
    ),
)
