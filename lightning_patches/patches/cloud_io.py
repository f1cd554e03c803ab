"""``fabric/utilities/cloud_io.py``: reading checkpoints."""

from __future__ import annotations

import pickle
from typing import Any, Callable

from lightning_patches import _runtime, trust
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _load(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def load(path_or_url: Any, map_location: Any = None) -> Any:
        file = trust.trusted_checkpoint(path_or_url)
        if file:
            import torch

            with open(file, "rb") as stream:
                return torch.load(stream, map_location=map_location, weights_only=False)
        try:
            return original(path_or_url, map_location)
        except pickle.UnpicklingError:
            _runtime.warn_once(
                "trusted-checkpoint-load",
                f"{path_or_url} holds objects that torch does not load by default. If nobody else can write to its"
                " directory, call lightning_patches.trust_checkpoints(directory) in the script before loading.",
            )
            raise

    return load


PATCHES = (
    Patch(
        name="trusted-checkpoint-load",
        title="Checkpoints with objects of your own load from a directory that the script trusts",
        group="compat",
        affected=(">=2.0.0,<2.4.0",),
        targets=(Target("fabric.utilities.cloud_io:_load", _load),),
        upstream=Upstream(pull_requests=(20010,), commit="bf25167bbf", fixed_in="2.4.0"),
        impact=Impact(
            "With torch 2.6 and later a checkpoint whose hyper-parameters hold objects of your own classes cannot be "
            "loaded, neither to resume nor with load_from_checkpoint.",
            ("Weights only load failed", "Unsupported global", "weights_only"),
        ),
        note="Does nothing until the script says lightning_patches.trust_checkpoints(directory): loading objects runs "
        "code that the file names. Local files only, symbolic links are followed. The official fix loads every file "
        "in this way, downloads included.",
    ),
)
