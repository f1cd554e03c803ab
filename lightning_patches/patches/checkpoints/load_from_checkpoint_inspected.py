"""Inspecting a LightningModule or LightningDataModule does not raise."""

import functools
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _get(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def get(self: Any, instance: Any, cls: Any) -> Any:
        try:
            return original(self, instance, cls)
        except TypeError:

            @functools.wraps(self.method)
            def method(*args: Any, **kwargs: Any) -> Any:
                return original(self, instance, cls)(*args, **kwargs)

            return method

    return get


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.1.0,<2.1.4",),
    targets=(Target("pytorch.utilities.model_helpers:_restricted_classmethod_impl.__get__", _get),),
    upstream=Upstream(
        pull_requests=(19332,),
        commit="3044e83d11",
        fixed_in="2.1.4",
        tests=("tests/tests_pytorch/utilities/test_model_helpers.py::test_restricted_classmethod",),
    ),
    impact=Impact(
        "inspect.getmembers(model), and any other code that reads all attributes of a LightningModule or "
        "LightningDataModule, raises an error which states that load_from_checkpoint was called.",
        ("load_from_checkpoint` cannot be called on an instance",),
        error="TypeError: The classmethod `....load_from_checkpoint` cannot be called on an instance. Please call it "
        "on the class type and make sure the return value is used.",
    ),
    note="On the class, load_from_checkpoint stays the same bound method. On an instance it is a function, "
    "which raises the same error when it is called.",
)
