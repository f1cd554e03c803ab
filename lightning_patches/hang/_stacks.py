"""Looks at the Python stacks of this process: does it move, and does it wait for other ranks?"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass
from types import FrameType
from typing import Any, Optional

from lightning_patches.hang import _evidence
from lightning_patches.hang._identity import main_group

_COMMUNICATION = (
    "torch/distributed/distributed_c10d.py",
    "torch/distributed/c10d_logger.py",
    "torch/distributed/rendezvous.py",
    "torch/distributed/utils.py",
    "torch/distributed/_functional_collectives.py",
    "torch/distributed/nn/functional.py",
    "torch/nn/parallel/distributed.py",
)
_BACKWARD = ("torch/autograd/graph.py", "torch/autograd/__init__.py")
_WRAPPERS = frozenset({"wrapper", "func_wrapper", "inner", "_time_logger", "_exception_logger"})
_MOST_FRAMES = 40


@dataclass(frozen=True)
class View:
    """What a rank tells of itself again and again.

    Args:
        place: where the main thread is, ``"train.py:12 in training_step"``.
        waits: how long the rank has waited for others in one call, in seconds; 0 if it does not wait.
        what: the call it waits in, ``"barrier"``.
        number: sum of its process groups' sequence numbers; -1 as long as there is none.
        still: for how long the main thread has not moved, in seconds.
        changes: how often the main thread was seen to have moved, within the last timeout.
    """

    place: str
    waits: float
    what: str
    number: int
    still: float
    changes: int


class Sampler:
    """Compares a process's stacks with what they were when it last looked.

    Frames can't be told apart from later frames of the same code without holding on to them, and with them to the
    user's tensors. So positions in the code are compared, at moments that are a little irregular, together with the
    sequence numbers of the process groups, which grow with every collective.

    Args:
        timeout: in seconds.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._main: tuple[int, float] = (0, time.monotonic())
        self._calls: dict[int, tuple[int, float]] = {}
        self._changes: deque[float] = deque(maxlen=16)

    def look(self) -> View:
        now = time.monotonic()
        number = sequence_number()
        own = threading.get_ident()
        main = threading.main_thread().ident
        place, waits, what = "", 0.0, ""
        calls: dict[int, tuple[int, float]] = {}
        for thread, frame in sys._current_frames().items():
            if thread == own:
                continue
            call = _communication(frame, number >= 0)
            if thread == main:
                place = _place(frame)
                signature = hash((_signature(frame), number))
                if signature != self._main[0]:
                    self._main = (signature, now)
                    self._changes.append(now)
            elif call is None:
                continue
            if call is not None:
                signature = hash((_signature(call[0].f_back), call[1], number))
                before = self._calls.get(thread)
                calls[thread] = before if before is not None and before[0] == signature else (signature, now)
                waited = now - calls[thread][1]
                if waited >= waits:
                    waits, what = waited, call[1]
        self._calls = calls
        still = now - self._main[1]
        if not what and still >= self.timeout and number >= 0:
            what = _evidence.unfinished_collective()  # the device is what the main thread waits for
            waits = still if what else 0.0
        while self._changes and now - self._changes[0] > self.timeout:
            self._changes.popleft()
        return View(place, waits, what, number, still, len(self._changes))


def main_frames() -> list[FrameType]:
    """The main thread's stack, innermost first."""
    return _frames(sys._current_frames().get(threading.main_thread().ident or 0))


def describe() -> str:
    """The main thread's stack, and those of other threads that communicate, as text."""
    main = threading.main_thread().ident
    parts: list[str] = []
    for thread, frame in sys._current_frames().items():
        if thread == threading.get_ident() or (thread != main and _communication(frame, False) is None):
            continue
        lines = [line for entry in traceback.format_stack(frame) for line in entry.rstrip().split("\n")]
        if len(lines) > 2 * _MOST_FRAMES:
            lines = [*lines[:8], "  ...", *lines[-2 * _MOST_FRAMES + 8 :]]
        if thread == main:
            parts.insert(0, "\n".join(lines))
        else:
            parts.append("thread beside the main one:\n" + "\n".join(lines))
    return "\n".join(parts)


def sequence_number() -> int:
    """How many collectives this rank has begun, over all its process groups; -1 without a process group."""
    if main_group() is None:
        return -1
    total = 0
    world: Any = getattr(sys.modules["torch.distributed.distributed_c10d"], "_world", None)
    for group in list(getattr(world, "pg_map", None) or [main_group()]):
        try:
            total += group._get_sequence_number_for_group()
        except Exception:
            continue  # a backend that does not count
    return total


def _frames(frame: Optional[FrameType]) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _signature(frame: Optional[FrameType]) -> int:
    return hash(tuple((id(f.f_code), f.f_lasti) for f in _frames(frame)))


def _place(frame: FrameType) -> str:
    file = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"


def _communication(frame: FrameType, has_group: bool) -> Optional[tuple[FrameType, str]]:
    """The outermost frame of the call into ``torch.distributed`` that a thread is in at its inner end, and its name."""
    if has_group and frame.f_code.co_filename.endswith(_BACKWARD):
        return frame, "backward"
    found: Optional[FrameType] = None
    name = ""
    current: Optional[FrameType] = frame
    while current is not None and current.f_code.co_filename.endswith(_COMMUNICATION):
        if current.f_code.co_name not in _WRAPPERS:
            name = current.f_code.co_name
        found, current = current, current.f_back
    return (found, name) if found is not None and name else None
