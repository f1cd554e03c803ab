"""LightningDataModule.load_from_checkpoint accepts map_location."""

from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _load_from_checkpoint(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load_from_checkpoint(cls: Any, checkpoint_path: Any, *args: Any, **kwargs: Any) -> Any:
        if "map_location" not in kwargs:
            return original(cls, checkpoint_path, *args, **kwargs)
        hparams_file = args[0] if args else kwargs.pop("hparams_file", None)
        load = upstream_module(namespace, "pytorch.core.saving")._load_from_checkpoint
        return load(cls, checkpoint_path, hparams_file=hparams_file, strict=None, **kwargs)

    return load_from_checkpoint


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.0.5",),
    targets=(Target("pytorch.core.datamodule:LightningDataModule.load_from_checkpoint", _load_from_checkpoint),),
    upstream=Upstream(
        pull_requests=(17950,),
        commit="1484116478",
        fixed_in="2.0.5",
        tests=("tests/tests_pytorch/core/test_saving.py::test_load_from_checkpoint_map_location_cpu",),
    ),
    impact=Impact(
        "A datamodule from a checkpoint that was saved on a GPU cannot be loaded on a machine without a GPU.",
        ("got multiple values for keyword argument 'map_location'",),
        error="TypeError: ... got multiple values for keyword argument 'map_location'",
    ),
    note="Pass map_location as a keyword argument: it is the second argument in the fixed releases, but the "
    "second argument of this release is hparams_file.",
)
