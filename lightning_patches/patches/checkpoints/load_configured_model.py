"""load_from_checkpoint loads layers that configure_model creates."""

from __future__ import annotations

import contextlib
import copy
from collections import OrderedDict
from typing import Any, Callable, Iterator

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _load_state(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _load_state(cls: Any, checkpoint: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        base = upstream_module(namespace, "pytorch.core.module").LightningModule
        if not issubclass(cls, base) or cls.configure_model is base.configure_model:
            return original(cls, checkpoint, *args, **kwargs)
        # Copy the parts that on_load_checkpoint may change, without calling methods of the program's objects.
        before = {
            name: copy.copy(value) if type(value) in (dict, OrderedDict) else value
            for name, value in checkpoint.items()
        }
        try:
            return original(cls, checkpoint, *args, **kwargs)
        except Exception as error:  # raise the first error if the second attempt also fails
            with contextlib.suppress(Exception), _configured(cls):
                return original(cls, before, *args, **kwargs)
            raise error

    return _load_state


@contextlib.contextmanager
def _configured(cls: Any) -> Iterator[None]:
    """Make the next model of this class call configure_model before on_load_checkpoint, as 2.2 and later do."""
    own = vars(cls).get("on_load_checkpoint")

    def restore() -> None:
        if own is not None:
            cls.on_load_checkpoint = own
        elif "on_load_checkpoint" in vars(cls):
            del cls.on_load_checkpoint

    def on_load_checkpoint(self: Any, checkpoint: dict[str, Any]) -> None:
        restore()
        self.configure_model()
        self.on_load_checkpoint(checkpoint)

    cls.on_load_checkpoint = on_load_checkpoint
    try:
        yield
    finally:
        restore()


PATCH = Patch(
    group="crash",
    affected=(">=2.1.0,<2.2.0",),
    targets=(Target("pytorch.core.saving:_load_state", _load_state),),
    upstream=Upstream(issues=(18829,), pull_requests=(19036,), fixed_in="2.2.0"),
    impact=Impact(
        "load_from_checkpoint fails for a module that creates layers in configure_model, because the "
        "checkpoint has keys that the module does not have.",
        ("Unexpected key(s) in state_dict", "load_from_checkpoint fails with configure_model: unexpected keys"),
        error='RuntimeError: Error(s) in loading state_dict for ...: Unexpected key(s) in state_dict: "..."',
    ),
    added="0.2.0",
    note="The official fix calls configure_model at each load. This patch calls it only if loading fails "
    "without it. With strict=False loading does not fail: the weights of those layers are skipped, with "
    "the warning of this release.",
)
