"""torch.compile with arguments can be used as a decorator after Fabric is imported."""

import sys
from typing import Any, Callable

from lightning_patches.patch import Consequence, Impact, Patch, Target, Upstream


def _capture_compile_kwargs(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _capture_compile_kwargs(compile_fn: Any) -> Any:
        made = original(compile_fn)
        made.__defaults__ = (None,)  # its only parameter is the model, whose default is None in torch.compile
        return made

    # The module has already called the original in its last statement.
    made = getattr(sys.modules.get("torch"), "compile", None)
    while made is not None:
        if getattr(made, "__globals__", {}) is original.__globals__ and made.__code__.co_name == "_capture":
            made.__defaults__ = (None,)
        made = getattr(made, "__wrapped__", None)
    return _capture_compile_kwargs


PATCH = Patch(
    group="crash",
    affected=(">=2.2.0,<2.2.2",),
    targets=(Target("fabric.wrappers:_capture_compile_kwargs", _capture_compile_kwargs),),
    upstream=Upstream(pull_requests=(19627,), fixed_in="2.2.2"),
    impact=Impact(
        "@torch.compile(...) with arguments fails after lightning, pytorch_lightning or lightning_fabric is imported.",
        ("compile() missing 1 required positional argument: 'model'",),
        error="TypeError: compile() missing 1 required positional argument: 'model'",
        # A traceback of the bug has no Lightning frame: the call itself fails.
        consequences=(
            Consequence(
                ("compile() missing 1 required positional argument: 'model'",),
                r"\bcompile\(\w",
                "torch.compile works as a decorator, but Lightning has replaced it",
                is_sure=True,
            ),
        ),
    ),
    added="0.2.0",
)
