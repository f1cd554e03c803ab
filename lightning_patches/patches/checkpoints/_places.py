"""Where a checkpoint lies: paths of any file system, compared by their text."""

from __future__ import annotations

import os
from typing import Any

from lightning_patches.engine.distributions import upstream_module


def place_of(path: Any) -> tuple[str, str]:
    """Protocol, and path below it. Told by the text: only the program's CheckpointIO may know what it means."""
    text, protocol = str(path), protocol_of(path)
    if protocol == "file":
        return protocol, os.path.abspath(text.rpartition("://")[2])
    return protocol, text[len(protocol) :].lstrip(":").strip("/")


def protocol_of(path: Any) -> str:
    from fsspec.utils import get_protocol  # type: ignore[import-untyped]

    return str(get_protocol(str(path)))


def directory_of(callback: Any, namespace: str) -> Any:
    """Where a ModelCheckpoint has its files; ``None`` for a class derived from it, which may have them elsewhere.

    Not by `Target.stock`: the file that was resumed from is kept by such a class, too.
    """
    known = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
    return callback.dirpath if type(callback) is known else None


def ckpt_path_of(trainer: Any) -> Any:
    """What the training was resumed from, from where the Trainer keeps it: ``ckpt_path`` may be the program's own."""
    return getattr(getattr(trainer, "_checkpoint_connector", None), "_ckpt_path", None)
