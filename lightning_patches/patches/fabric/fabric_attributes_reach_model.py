"""An attribute that is set on the result of fabric.setup() is set on the model."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _setattr(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        is_own = not is_set_up(self) or name in dir(self)
        if not is_own or (is_set_up(self) and hasattr(self._original_module, name)):
            setattr(self._original_module, name, value)
        if is_own:
            original(self, name, value)

    return __setattr__


def is_set_up(wrapper: Any) -> bool:
    """True if the wrapper's ``__init__`` has finished."""
    return "_precision" in wrapper.__dict__


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("numbers", "the model computes with the new value"),
    affected=(">=1.9.0,<2.1.0",),
    targets=(Target("fabric.wrappers:_FabricModule.__setattr__", _setattr, adds=True),),
    upstream=Upstream(pull_requests=(17731,), commit="377bfd2768", fixed_in="2.1.0"),
    impact=Impact(
        "If a program sets an attribute on the result of fabric.setup(), it stays on the wrapper: the model "
        "computes with the old value, while the wrapper shows the new one.",
        ("setting an attribute on a Fabric module has no effect",),
    ),
    opt_in="users who set attributes on the result of fabric.setup(), on releases below 2.1.0",
    note="Opt-in because existing programs compute with the model's old value. Attributes that the wrapper "
    "also has, such as training or forward, are set on both, as from 2.2.2 on. Without the patch, set the "
    "attribute on `.module` of the result.",
)
