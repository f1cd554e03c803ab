"""Checkpoints of Lightning 1.x that contain the fault-tolerant mode can be loaded."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_LEGACY = "pytorch.utilities.migration.utils:pl_legacy_patch"

_ENUM = "_FaultTolerantMode"


def _enter_with_enum(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __enter__(self: Any) -> Any:  # noqa: N807
        entered = original(self)
        enums = upstream_module(namespace, "pytorch.utilities.enums")
        if not hasattr(enums, _ENUM):  # a script may have added it
            members = {name.upper(): name for name in ("disabled", "automatic", "manual")}
            made = enums.LightningEnum(_ENUM, members, module=enums.__name__)
            setattr(enums, _ENUM, made)
            self._lightning_patches_enum = made
        return entered

    return __enter__


def _exit_with_enum(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __exit__(self: Any, *error: Any) -> None:  # noqa: N807
        enums = upstream_module(namespace, "pytorch.utilities.enums")
        made = vars(self).pop("_lightning_patches_enum", None)
        if made is not None and getattr(enums, _ENUM, None) is made:
            delattr(enums, _ENUM)
        original(self, *error)

    return __exit__


PATCH = Patch(
    group="crash",
    affected=(">=1.9.0,<2.0.6",),
    targets=(Target(f"{_LEGACY}.__enter__", _enter_with_enum), Target(f"{_LEGACY}.__exit__", _exit_with_enum)),
    upstream=Upstream(
        pull_requests=(18094,),
        commit="41320d8354",
        fixed_in="2.0.6",
        tests=("tests/tests_pytorch/utilities/migration/test_utils.py::test_patch_legacy_fault_tolerant_mode",),
    ),
    impact=Impact(
        "A checkpoint of 1.6 to 1.9 that contains the state of its Trainer, for example in the "
        "hyperparameters, cannot be loaded.",
        ("Can't get attribute '_FaultTolerantMode' on <module 'pytorch_lightning.utilities.enums'",),
        error="AttributeError: Can't get attribute '_FaultTolerantMode' on <module "
        "'pytorch_lightning.utilities.enums' from '...'>",
    ),
    note="PyTorch 2.6 and later load such a file only if the script allows objects, as with 2.0.6 and later: "
    "call lightning_patches.trust_checkpoints(directory). 1.8 still has the enum, and loads such files.",
    around=("legacy-checkpoint-threads",),
)
