"""Recognize the temporary checkpoint of a finder.

A finder writes the initial state to a temporary checkpoint, changes the trainer for its trials, and restores everything
at the end. The path is read from the finder's local variable, since any file can have such a name.
"""

from __future__ import annotations

from types import FrameType
from typing import Optional

from lightning_patches.engine.distributions import module_name

_LR_FINDER = "pytorch.tuner.lr_finder"

_BATCH_SIZE = "pytorch.tuner.batch_size_scaling"


_FINDERS = {_LR_FINDER: "_lr_find", _BATCH_SIZE: "_scale_batch_size"}


def is_finder(frame: FrameType, namespace: str) -> bool:
    """True if the frame is a call of Lightning's ``_lr_find`` or ``_scale_batch_size``, running or failed."""
    name, module = frame.f_code.co_name, frame.f_globals.get("__name__")
    return any(name == function and module == module_name(namespace, home) for home, function in _FINDERS.items())


def finder_above(frame: Optional[FrameType], namespace: str) -> Optional[FrameType]:
    """Return the finder's frame that called this frame, directly or not; ``None`` if there is no such frame."""
    while frame is not None and not is_finder(frame, namespace):
        frame = frame.f_back
    return frame
