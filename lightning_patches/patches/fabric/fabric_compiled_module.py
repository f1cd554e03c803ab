"""fabric.setup accepts a compiled module."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_MODULE = "fabric.wrappers:_FabricModule"


def _init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        # The original evaluates `original_module or forward_module`. The truth value of a compiled module calls `len`,
        # which fails. Without the argument, the original uses the other module without testing it.
        given = args[2] if len(args) > 2 else kwargs.get("original_module")
        if not _is_compiled(given):
            original(self, *args, **kwargs)
            return
        kwargs.pop("original_module", None)
        original(self, *args[:2], **kwargs)
        self._modules["_original_module"] = given  # not by __setattr__, which sets it on both modules from 2.1 on

    return __init__


def _module(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def module(self: Any) -> Any:
        given = self._original_module
        return given if _is_compiled(given) else original(self)

    return module


def _is_compiled(module: Any) -> bool:
    import torch

    return isinstance(module, torch.nn.Module) and "_orig_mod" in module._modules


PATCH = Patch(
    group="compat",
    affected=(">=1.9.0,<=2.6.6",),
    targets=(Target(f"{_MODULE}.__init__", _init, before="2.6.4"), Target(f"{_MODULE}.module", _module)),
    upstream=Upstream(issues=(17250,)),
    impact=Impact(
        "With newer versions of torch, fabric.setup(torch.compile(model)) fails: in 2.0 and 2.1 always, and up "
        "to 2.6.1 with _reapply_compile=False. In later releases, reading `.module` of the result fails.",
        ("does not support len()",),
        error="TypeError: ... does not support len()",
    ),
    note="The cause is in torch: since its PR 159208 the truth value of a compiled module depends on its "
    "length, and is an error if it has none (torch issue 196253). Modules that are not compiled are "
    "unchanged, and so are strategies that return an object that is not a torch.nn.Module. Without the "
    "patch, don't compile the module.",
)
