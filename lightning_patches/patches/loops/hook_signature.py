"""The parameters of a step are read from its code object."""

from inspect import CO_VARARGS
from types import FunctionType, MethodType
from typing import Any, Callable, Optional

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _is_param_in_hook_signature(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def is_param_in_hook_signature(
        hook_fx: Any, param: str, explicit: bool = False, min_args: Optional[int] = None
    ) -> bool:
        function = hook_fx.__func__ if type(hook_fx) is MethodType else hook_fx
        # A function that is wrapped, or sets __signature__, has attributes.
        if type(function) is not FunctionType or function.__dict__:
            return original(hook_fx, param, explicit, min_args)
        code = function.__code__
        taken = code.co_varnames[1 : code.co_argcount]
        return (
            param in taken
            or (not explicit and bool(code.co_flags & CO_VARARGS))
            or (isinstance(min_args, int) and len(taken) >= min_args)
        )

    return is_param_in_hook_signature


PATCH = Patch(
    added="0.2.0",
    group="performance",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(Target("pytorch.utilities.signature_utils:is_param_in_hook_signature", _is_param_in_hook_signature),),
    upstream=Upstream(issues=(20388,)),
    impact=Impact(
        "Each self.log in a training_step, and each step, reads the step's signature with `inspect`, which takes up "
        "to a quarter of the time of self.log.",
        ("self.log is slow", "inspect.getfullargspec takes long in self.log"),
    ),
    note="The signature is read from the function's code instead. A step that is wrapped, sets __signature__, or is "
    "not a plain function is inspected as without the patch.",
    around=("decorated-hook-signature",),
)
