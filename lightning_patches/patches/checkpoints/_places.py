"""Compare the locations of checkpoints as text, on any file system."""

from __future__ import annotations

import os
from typing import Any

from lightning_patches.engine.distributions import upstream_module


def place_of(path: Any) -> tuple[str, str]:
    """Return the protocol and the path.

    Only the text is used, because the path may be one that only the program's CheckpointIO understands.
    """
    text, protocol = str(path), protocol_of(path)
    if protocol == "file":
        return protocol, os.path.abspath(text.rpartition("://")[2])
    return protocol, text[len(protocol) :].lstrip(":").strip("/")


def protocol_of(path: Any) -> str:
    from fsspec.utils import get_protocol  # type: ignore[import-untyped]

    return str(get_protocol(str(path)))


def directory_of(callback: Any, namespace: str) -> Any:
    """Return the directory of a ModelCheckpoint; ``None`` for a subclass, which may use another one.

    `Target.stock` is not used instead, because for a subclass the file that training was resumed from is kept, too.
    """
    known = upstream_module(namespace, "pytorch.callbacks.model_checkpoint").ModelCheckpoint
    return callback.dirpath if type(callback) is known else None


def ckpt_path_of(trainer: Any) -> Any:
    """Return the path that training was resumed from, without reading ``ckpt_path``, which the program may override."""
    holder = trainer if hasattr(trainer, "_ckpt_path") else getattr(trainer, "_checkpoint_connector", None)  # 1.x, 2.x
    return getattr(holder, "_ckpt_path", None)
