"""The checkpoint that a finder keeps for itself.

A finder writes the initial state into a temporary checkpoint, changes the trainer for its trials, and puts
everything back at the end. Which checkpoint belongs to a finder is taken from the finder itself, from its local
variable, because a name alone proves nothing.
"""

from __future__ import annotations

from types import FrameType
from typing import Optional

from lightning_patches.engine.distributions import module_name

_LR_FINDER = "pytorch.tuner.lr_finder"

_BATCH_SIZE = "pytorch.tuner.batch_size_scaling"


_FINDERS = {_LR_FINDER: "_lr_find", _BATCH_SIZE: "_scale_batch_size"}


# ---------------------------------------------------------------- whose checkpoint


def is_finder(frame: FrameType, namespace: str) -> bool:
    """Whether this frame is a running (or failed) ``_lr_find`` or ``_scale_batch_size`` of Lightning's own."""
    name, module = frame.f_code.co_name, frame.f_globals.get("__name__")
    return any(name == function and module == module_name(namespace, home) for home, function in _FINDERS.items())


def finder_above(frame: Optional[FrameType], namespace: str) -> Optional[FrameType]:
    """The finder that a frame was called from."""
    while frame is not None and not is_finder(frame, namespace):
        frame = frame.f_back
    return frame
