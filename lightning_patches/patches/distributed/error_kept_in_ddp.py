"""An error in a rank is shown unchanged, whatever its arguments are."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _augment_message(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _augment_message(exception: BaseException, *args: Any, **kwargs: Any) -> None:
        # The original adds a hint to the error's text, and fails if an argument of the error is not a string.
        if all(isinstance(argument, str) for argument in exception.args):
            original(exception, *args, **kwargs)

    return _augment_message


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.0.0,<2.0.5",),
    targets=(Target("pytorch.utilities.exceptions:_augment_message", _augment_message),),
    upstream=Upstream(
        pull_requests=(17948,),
        commit="28beb8a478",
        fixed_in="2.0.5",
        tests=("tests/tests_pytorch/utilities/test_exceptions.py::test_augment_message",),
    ),
    impact=Impact(
        "Under DDP, an error whose argument is not one string, such as KeyError(3), is replaced by a TypeError from "
        "inside Lightning. The original error appears only further up in the output.",
        ("TypeError: expected string or bytes-like object",),
        error="TypeError: expected string or bytes-like object",
    ),
    note="If an error has several arguments and only one of them is a string for which Lightning has a hint, "
    "the hint is not added.",
)
