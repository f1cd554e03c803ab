"""``fabric/wrappers.py``: what ``fabric.setup`` and ``fabric.setup_module`` return."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Iterator

from lightning_patches import gradient_sync
from lightning_patches.distributions import module_name
from lightning_patches.patch import Impact, Patch, Target, Upstream

_MODULE = "fabric.wrappers:_FabricModule"
_SYNC = "_lightning_patches_gradient_sync"


def _init(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        sync = gradient_sync.watch(self._forward_module)
        if sync is not None:
            self.__dict__[_SYNC] = sync

    return __init__


def _forward(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = original(self, *args, **kwargs)
        sync = self.__dict__.get(_SYNC)
        if sync is not None:
            sync.after_forward()
        return output

    return forward


def _method_guard(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _wrap_method_with_module_call_tracker(self: Any, method: Callable[..., Any], name: str) -> Any:
        # The guard refuses a method that calls submodules, because DDP would not notice. Here it does.
        return method if _methods_are_safe(self, namespace) else original(self, method, name)

    return _wrap_method_with_module_call_tracker


def _method_warning(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _validate_method_access(self: Any, name: str, attribute: Any) -> None:
        if not _methods_are_safe(self, namespace):
            original(self, name, attribute)

    return _validate_method_access


def _methods_are_safe(module: Any, namespace: str) -> bool:
    """Whether a method may be called past the wrapper: gradients are taken care of, and no autocast is missed."""
    if module.__dict__.get(_SYNC) is None:
        return False
    strategy = module.__dict__.get("_strategy")
    precision = module._precision if strategy is None else strategy.precision
    plain = importlib.import_module(module_name(namespace, "fabric.plugins.precision.precision")).Precision
    return type(precision) is plain


def _getitem(original: None, namespace: str) -> Callable[..., Any]:
    def __getitem__(self: Any, key: Any) -> Any:  # noqa: N807
        return self._original_module[key]

    return __getitem__


def _contains(original: None, namespace: str) -> Callable[..., bool]:
    def __contains__(self: Any, key: Any) -> bool:  # noqa: N807
        return key in self._original_module

    return __contains__


def _iter(original: None, namespace: str) -> Callable[..., Iterator[Any]]:
    def __iter__(self: Any) -> Iterator[Any]:  # noqa: N807
        # With __getitem__ alone, Python would iterate by counting: KeyError 0 for a ModuleDict.
        return iter(self._original_module)

    return __iter__


PATCHES = (
    Patch(
        name="fabric-submodule-sync",
        title="Gradients are synchronised for parts of a Fabric module that are called by themselves",
        group="correctness",
        affected=(">=2.0.0,<=2.6.6",),
        targets=(
            Target(f"{_MODULE}.__init__", _init),
            Target(f"{_MODULE}.forward", _forward),
            Target(f"{_MODULE}._validate_method_access", _method_warning, since="2.0.2", before="2.1.1"),
            Target(f"{_MODULE}._wrap_method_with_module_call_tracker", _method_guard, since="2.1.1"),
            Target(f"{_MODULE}.__getitem__", _getitem, adds=True),
            Target(f"{_MODULE}.__contains__", _contains, adds=True),
            Target(f"{_MODULE}.__iter__", _iter, adds=True),
        ),
        upstream=Upstream(issues=(20293,)),
        impact=Impact(
            "A model in a ModuleDict (teacher and student, a GAN) that is set up as a whole and called by its parts "
            "trains without gradient synchronisation: every rank goes its own way, and nothing says so.",
            (
                "gradients differ between ranks when a submodule is called after fabric.setup_module",
                "'_FabricModule' object is not subscriptable",
                "from outside the model",
            ),
        ),
        equivalent_to="the usage that the maintainers recommend: every part that trains is set up by itself",
        note="DDP only, and every rank has to run the backward (one that only some ranks run belongs under "
        "`fabric.no_backward_sync` or into `torch.autograd.grad`). Gradients are averaged after the backward, not "
        "during it. With mixed precision a part that is called by itself still runs without autocast: put the call "
        "under `fabric.autocast()`. With torch older than 2.0 nothing is averaged.",
    ),
)
