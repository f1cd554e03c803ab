"""``fabric/wrappers.py``: a module that the user has compiled before ``fabric.setup``."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_MODULE = "fabric.wrappers:_FabricModule"


def _init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        # The original asks whether the user's module is true, which for a compiled one is a question for its length.
        # It does not ask so of the other module, which it takes where it was given none.
        given = args[2] if len(args) > 2 else kwargs.pop("original_module", None)
        original(self, *args[:2], **kwargs)
        if given is not None:
            self._modules["_original_module"] = given  # past __setattr__, which from 2.1 on writes to both modules

    return __init__


def _module(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def module(self: Any) -> Any:
        given = self._original_module
        return self._forward_module if given is None else given

    return module


PATCHES = (
    Patch(
        name="fabric-compiled-module",
        title="fabric.setup takes a compiled module",
        group="compat",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(
            Target(f"{_MODULE}.__init__", _init, before="2.6.4"),
            Target(f"{_MODULE}.module", _module),
        ),
        upstream=Upstream(issues=(17250,)),
        impact=Impact(
            "With newer versions of torch, fabric.setup(torch.compile(model)) ends the program: in 2.0 and 2.1 always, "
            "up to 2.6.1 where Fabric is asked to leave the compilation alone (_reapply_compile=False), and in the "
            "releases after it when `.module` of the result is read.",
            ("does not support len()",),
        ),
        equivalent_to="the same module, not compiled",
        note="The cause lies in torch: since its PR 159208 a compiled module answers the question whether it is true "
        "with its length, or that it has none (torch issue 196253). The Lightning issue is about compiling in Fabric.",
    ),
)
