"""Locations of checkpoints: paths of any file system, compared as text."""

from __future__ import annotations

import os
from typing import Any

from lightning_patches.engine.distributions import upstream_module


def place_of(path: Any) -> tuple[str, str]:
    """Return protocol and path. Uses only the text, since only the program's CheckpointIO may understand the path."""
    text, protocol = str(path), protocol_of(path)
    if protocol == "file":
        return protocol, os.path.abspath(text.rpartition("://")[2])
    return protocol, text[len(protocol) :].lstrip(":").strip("/")


def protocol_of(path: Any) -> str:
    from fsspec.utils import get_protocol  # type: ignore[import-untyped]

    return str(get_protocol(str(path)))


def directory_of(callback: Any, namespace: str) -> Any:
    """Return the directory of a ModelCheckpoint; ``None`` for a subclass, which may use another one.

    Not with `Target.stock`: the file that training was resumed from is kept for a subclass, too.
    """
    known = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
    return callback.dirpath if type(callback) is known else None


def ckpt_path_of(trainer: Any) -> Any:
    """Return the path that training was resumed from, without a call of a ``ckpt_path`` that the program overrides."""
    holder = trainer if hasattr(trainer, "_ckpt_path") else getattr(trainer, "_checkpoint_connector", None)  # 1.x, 2.x
    return getattr(holder, "_ckpt_path", None)
