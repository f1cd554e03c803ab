"""The Tuner's finders can load their temporary checkpoint, whatever it contains."""

from __future__ import annotations

import inspect
import os
import sys
from typing import Any, Callable

from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.finders._own_checkpoint import finder_above


def _load(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    prefixes = (".lr_find_", ".scale_batch_size_")

    def _load(path_or_url: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        asked = args[0] if args else kwargs.get("weights_only")
        is_path = asked is None and isinstance(path_or_url, (str, os.PathLike))
        if is_path and os.path.basename(path_or_url).startswith(prefixes):
            finder = finder_above(sys._getframe(1), namespace)
            if finder is not None and finder.f_locals.get("ckpt_path") == path_or_url:
                return _read(path_or_url, namespace, map_location)
        return original(path_or_url, map_location, *args, **kwargs)

    return _load


def _read(path: Any, namespace: str, map_location: Any) -> dict[str, Any]:
    """Read a finder's temporary checkpoint with objects of any class.

    Raises:
        FileNotFoundError: the file is gone.
    """
    import torch

    cloud_io = upstream_module(namespace, "fabric.utilities.cloud_io")
    options = {"weights_only": False} if "weights_only" in inspect.signature(torch.load).parameters else {}
    with cloud_io.get_filesystem(path).open(path, "rb") as file:
        checkpoint: dict[str, Any] = torch.load(file, map_location=map_location, **options)
    return checkpoint


PATCH = Patch(
    group="crash",
    affected=(">=2.0.0,<2.4.0", ">=2.6.0,<=2.6.6"),
    targets=(Target("fabric.utilities.cloud_io:_load", _load),),
    witnesses=("pytorch.tuner.lr_finder:_lr_find", "pytorch.tuner.batch_size_scaling:_scale_batch_size"),
    upstream=Upstream(
        pull_requests=(21758,),
        commit="fe6b1cc4e8",
        tests=("tests/tests_pytorch/tuner/test_lr_finder.py::test_lr_finder_respects_weights_only",),
    ),
    impact=Impact(
        "With PyTorch 2.6 and later, the learning rate finder and the batch size finder fail if the model's saved "
        "hyperparameters contain objects other than plain values.",
        ("Weights only load failed", "WeightsUnpickler error: Unsupported global"),
        error="_pickle.UnpicklingError: Weights only load failed.",
        frames=("/tuner/lr_finder.py", "/tuner/batch_size_scaling.py"),
    ),
    opt_in="users who search a learning rate or batch size with default_root_dir on a remote file system, or "
    "with ranks that torchrun or SLURM started",
    signs=(
        "SLURM_STEP_ID lr_find",
        "SLURM_STEP_ID LearningRateFinder",
        "TORCHELASTIC_RUN_ID lr_find",
        "TORCHELASTIC_RUN_ID LearningRateFinder",
    ),
    note="Opt-in because the file is not verified: a user who can write to that directory while the search "
    "runs can make it run code. If Lightning starts the ranks and the file is local, the patch is not "
    "needed: own-checkpoint-load, a default patch, reads the file. All other checkpoints are loaded as "
    "without the patch. The official change is not released yet. It adds an argument that you must pass "
    "to the learning rate finder; this patch needs no argument and also covers the batch size finder. "
    "Without the patch, use a model whose hyperparameters are plain values.",
    after=("own-checkpoint-load",),
    around=("trusted-checkpoint-load",),
)
