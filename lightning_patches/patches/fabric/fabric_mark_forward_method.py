"""Fabric modules have mark_forward_method(), which makes a method go through the strategy."""

from __future__ import annotations

from types import MethodType
from typing import Any, Callable, Union

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.fabric._through_forward import is_wrapped, through_forward

_MODULE = "fabric.wrappers:_FabricModule"

_MARKED = "_lightning_patches_forward_methods"


def _getattr_marked(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __getattr__(self: Any, item: Any) -> Any:  # noqa: N807
        marked = self.__dict__.get(_MARKED)
        if marked is not None and item in marked and is_wrapped(self):
            return through_forward(self, item)
        return original(self, item)

    return __getattr__


def _mark_forward_method(original: None, namespace: str) -> Callable[..., None]:
    def mark_forward_method(self: Any, method: Union[MethodType, str]) -> None:
        """Make calls of a method of this wrapper go through the strategy.

        Args:
            method: the method of the wrapped module, or its name.

        Raises:
            TypeError: it is neither.
            ValueError: it is ``forward``, which always goes through the strategy.
            AttributeError: the wrapped module has no such method.
        """
        if not isinstance(method, (MethodType, str)):
            raise TypeError(f"Expected a method or its name, got {type(method).__name__}.")
        name = method if isinstance(method, str) else method.__name__
        if name == "forward":
            raise ValueError("The forward method goes through the strategy already: there is nothing to mark.")
        if not isinstance(getattr(self._original_module, name, None), MethodType):
            raise AttributeError(f"{type(self._original_module).__name__} has no method '{name}' that could be marked.")
        self.__dict__.setdefault(_MARKED, set()).add(name)

    return mark_forward_method


PATCH = Patch(
    group="compat",
    changes_results=Effect("numbers", "only in programs that check for mark_forward_method"),
    affected=(">=1.9.0,<2.3.0",),
    targets=(
        Target(f"{_MODULE}.__getattr__", _getattr_marked),
        Target(f"{_MODULE}.mark_forward_method", _mark_forward_method, adds=True),
    ),
    upstream=Upstream(
        pull_requests=(19690,),
        commit="e0307277a0",
        fixed_in="2.3.0",
        tests=("tests/tests_fabric/test_wrappers.py::test_fabric_module_mark_forward_method",),
    ),
    impact=Impact(
        "A method other than forward() that is called after fabric.setup() bypasses DDP or FSDP (up to 2.1.0) "
        "or is refused (from 2.1.1 on). Fabric has no way to call it through the strategy.",
        (
            "from outside the model. This will bypass the wrapper from the strategy",
            "object has no attribute 'mark_forward_method'",
        ),
    ),
    note="Methods that are not marked are unchanged. The error message of Fabric does not mention mark_forward_method.",
    after=("fabric-step-methods",),
)
