"""Checkpoints with custom objects can be loaded from a directory that the script trusts."""

import inspect
import io
import os
import pickle
import sys
from typing import Any, Callable

from lightning_patches import notices, trust
from lightning_patches.patch import Impact, Patch, Target, Upstream


def _load(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    takes_weights_only = "weights_only" in inspect.signature(original).parameters

    def load(path_or_url: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if (args[0] if args else kwargs.get("weights_only")) is not None:
            return original(path_or_url, map_location, *args, **kwargs)
        file, why_not = trust.open_trusted(path_or_url)
        if file is not None:
            with file:
                if takes_weights_only:
                    return original(file, map_location, weights_only=False)
                module: Any = sys.modules[original.__module__]
                return module.torch.load(file, map_location=map_location, weights_only=False)
        begin = path_or_url.tell() if type(path_or_url) is io.BytesIO else 0
        try:
            return original(path_or_url, map_location)
        except pickle.UnpicklingError:
            if why_not:
                notices.warn_once(f"trusted-checkpoint-load {why_not}", why_not)
            else:
                _warn_about_refused(path_or_url, begin)
            raise

    return load


def _warn_about_refused(path_or_file: Any, begin: int) -> None:
    """Print the classes that torch refused, and how to allow them. Never raises."""
    is_path = isinstance(path_or_file, (str, os.PathLike))
    if not is_path and type(path_or_file) is not io.BytesIO:
        return
    end = 0 if is_path else path_or_file.tell()
    try:
        import torch

        if not is_path:
            path_or_file.seek(begin)
        found = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(path_or_file))
    except Exception:  # an older torch, or not a torch file
        return
    finally:
        if not is_path:
            path_or_file.seek(end)
    if not found:
        return
    names = ", ".join(ascii(name)[1:-1] for name in found[:5]) + (", ..." if len(found) > 5 else "")
    hint = (
        f"{ascii(os.fspath(path_or_file)) if is_path else 'The checkpoint'} holds objects that torch does not load by"
        f" default: {names}. If you know the file, call torch.serialization.add_safe_globals([...]) with them"
    )
    if is_path:
        hint += ", or lightning_patches.trust_checkpoints(directory) if only you can write to its directory,"
    notices.warn_once("trusted-checkpoint-load", f"{hint} before loading it.")


PATCH = Patch(
    group="compat",
    affected=(">=1.5.0,<1.8.0", ">=1.8.0,<2.4.0", ">=2.6.0,<=2.6.6"),
    only_with=("torch>=2.6",),
    targets=(
        Target("fabric.utilities.cloud_io:_load", _load, since="1.9.0"),
        Target("lite.utilities.cloud_io:_load", _load, since="1.8.0", before="1.9.0"),
        Target("pytorch.utilities.cloud_io:load", _load, before="1.8.0"),
    ),
    upstream=Upstream(pull_requests=(20010,), others=((20010, "2.4.0"),), commit="bf25167bbf"),
    impact=Impact(
        "With torch 2.6 and later, a checkpoint whose hyperparameters contain objects of custom classes cannot be "
        "loaded, neither to resume nor with load_from_checkpoint.",
        (
            "Weights only load failed",
            "Unsupported global",
            "weights_only",
            "cloud_io._load, pl_load or torch.load is replaced by hand",
        ),
        error="_pickle.UnpicklingError: Weights only load failed.",
        frames=("/fabric/utilities/cloud_io.py",),
    ),
    note="The patch does nothing until the script calls lightning_patches.trust_checkpoints(directory), "
    "because loading objects runs code that the file names. It trusts local files only, follows symbolic "
    "links, and requires that only you and root can write the file and all directories above it, up to "
    "the root. An explicit weights_only is respected. The parts of sharded checkpoints (FSDP, DeepSpeed) "
    "are loaded as without the patch. The official fix, which 2.6.0 reverted, loads every file this way, "
    "downloads included. Without the patch, pass weights_only=False or set "
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1.",
    after=("own-checkpoint-load", "tuner-temporary-checkpoint"),
)
