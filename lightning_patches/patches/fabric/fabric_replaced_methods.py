"""A method that a program replaces on the result of fabric.setup() is called."""

import inspect
from typing import Any, Callable

from lightning_patches.engine.functions import stock_of
from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _setattr(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    wrapper = stock_of(original).__globals__.get("_FabricModule")

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        own = self.__dict__
        is_method = inspect.isfunction(getattr(wrapper, name, None))
        if not own.get("_fabric_module_initialized", False) or name in own or not is_method:
            original(self, name, value)
            return
        is_of_both = hasattr(self._original_module, name)
        setattr(self._original_module, name, value)
        if is_of_both:  # if it were set only on the wrapped module, it would not be called
            super(wrapper, self).__setattr__(name, value)

    return __setattr__


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "the new method is called"),
    affected=(">=2.1.0,<2.2.2",),
    targets=(Target("fabric.wrappers:_FabricModule.__setattr__", _setattr),),
    upstream=Upstream(
        pull_requests=(19705,),
        fixed_in="2.2.2",
        tests=("tests/tests_fabric/test_wrappers.py::test_fabric_module_setattr",),
    ),
    impact=Impact(
        "A program cannot replace a method on the result of fabric.setup() if Fabric's wrapper also has it, "
        "such as forward() or state_dict(): the model's method is replaced instead, and the wrapper's is still "
        "called.",
        ("monkeypatching forward of a Fabric module has no effect",),
    ),
)
