"""Sample the Python stacks of this process to find out if it moves, works or waits for other ranks."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
import threading
import time
import traceback
import weakref
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Callable, Optional

from lightning_patches.ranks._processes import Work
from lightning_patches.ranks.hang import _collectives, _settings
from lightning_patches.ranks.hang._collectives import Collective
from lightning_patches.ranks.hang._messages import MOST_FRAMES, printable
from lightning_patches.ranks.hang._registry import THREADS

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
_WAITING_MODULES = ("threading", "queue", "concurrent.futures._base", "concurrent.futures.thread")
_C_CLASSES = ("torch.distributed", "torch._C._distributed")
_C_OPERATORS = ("c10d", "_c10d_functional", "c10d_functional")
_LIBRARIES = tuple(
    path.replace("\\", "/") + "/" for name in ("stdlib", "platstdlib") if (path := sysconfig.get_paths().get(name))
)
_MOST_FRAMES = 40
_AT_END = "the program's end"
_SOON = 3.0
"""Seconds without movement after which the sampler uses slower checks. Healthy ranks move more often."""


_SLOWEST_PACKET = 3.0
"""Seconds after a packet for which a rank that receives data counts as working."""


@dataclass(frozen=True)
class View:
    """The state that a rank reports regularly.

    Args:
        place: position of the main thread in the user's code, ``"train.py:12 in training_step"``.
        at_end: True if the program has ended.
        waits: seconds for which the rank has waited for others in one call; 0 if it does not wait.
        what: the call in which the rank waits, ``"barrier"``.
        numbers: number of started collectives by process group; empty before a group exists.
        pending: the collective in which the rank waits, if torch's flight recorder has it.
        still: seconds for which the main thread has not moved.
        idle: seconds without progress, computation, reads or writes.
        works: True if the rank moves, computes, reads, writes, sends or receives.
        unclear: True if it is unknown if the rank works: it wakes up often, and has sockets without byte counters.
    """

    place: str
    at_end: bool
    waits: float
    what: str
    numbers: dict[str, int]
    pending: Optional[Collective]
    still: float
    idle: float
    works: bool
    unclear: bool


class Sampler:
    """Compare the stacks of this process with those of the previous sample.

    The sampler does not keep frames, since a frame keeps the user's tensors alive. So it can't distinguish a frame from
    a later frame of the same code. It compares positions in the code, at slightly irregular intervals, and the sequence
    numbers of the process groups, which grow with every collective.

    Only time during which this process runs counts, so that a suspended job does not look like a hang.

    Args:
        timeout: in seconds.
        work: returns the counters of this process.
    """

    def __init__(self, timeout: float, work: Callable[[], Work]) -> None:
        self.timeout = timeout
        self._work = work
        self._clock = _Clock()
        now = self._clock.now()
        self._main: tuple[int, float] = (0, now)
        self._calls: dict[int, tuple[int, float]] = {}
        self._progress: tuple[object, float] = (None, now)
        self._trainer: Optional[weakref.ref[Any]] = None
        self._changes: deque[float] = deque(maxlen=16)
        self._works: deque[Work] = deque(maxlen=64)
        self._worked = now - _SLOWEST_PACKET
        self._recorded: tuple[object, Optional[Collective]] = (None, None)

    def sample(self, torch: bool = True) -> View:
        """Take a sample. Makes no calls into torch if ``torch`` is false."""
        now = self._clock.now(2 * self.timeout / _settings.SAMPLES_PER_TIMEOUT + 2.0)
        numbers = _collectives.numbers() if torch else {}
        frames = sys._current_frames()
        main = frames.get(threading.main_thread().ident or 0)
        if main is not None:
            self._update_main(main, numbers, now)
        still = now - self._main[1]
        waits, what = self._wait(frames, numbers, still, now)
        pending = self._pending(numbers, still)
        if pending is not None and what in ("", "wait", "wait_tensor"):
            waits, what = max(waits, still), pending.name  # the thread waits for a handle or for the device
        while self._changes and now - self._changes[0] > self.timeout:
            self._changes.popleft()
        busy, works, unclear = self._update_work(still, now)
        moves = len(self._changes) >= 3 or still < self.timeout / 3
        if busy or self._has_progressed(numbers, moves, now):
            self._progress = (self._progress[0], now)
        place = _place(main) if main is not None else ""
        return View(
            place=place if torch else f"{_AT_END}, {place}"[:512],
            at_end=not torch or _is_at_end(),
            waits=waits,
            what=what,
            numbers=numbers,
            pending=pending if waits else None,
            still=still,
            idle=now - self._progress[1],
            works=not waits and (works or moves),
            unclear=not waits and unclear,
        )

    def _update_main(self, frame: FrameType, numbers: dict[str, int], now: float) -> None:
        signature = hash((_signature(frame), str(numbers)))
        if signature != self._main[0]:
            self._main = (signature, now)
            self._changes.append(now)

    def _wait(
        self, frames: dict[int, FrameType], numbers: dict[str, int], still: float, now: float
    ) -> tuple[float, str]:
        """Return the longest waiting time of a thread, and the call in which it waits."""
        own, main = threading.get_ident(), threading.main_thread().ident
        waits, what = 0.0, ""
        calls: dict[int, tuple[int, float]] = {}
        for thread, frame in frames.items():
            if thread == own:
                continue
            call = _communication(frame, bool(numbers))
            if call is None and thread == main and still >= min(_SOON, self.timeout / 2):
                name = _c_call(frame)
                call = (frame, name) if name else None
            if call is None:
                continue
            signature = hash((_signature(frame if thread == main else call[0].f_back), call[1], str(numbers)))
            before = self._calls.get(thread)
            since = self._main[1] if thread == main else now
            calls[thread] = before if before is not None and before[0] == signature else (signature, since)
            waited = now - calls[thread][1]
            if thread != main:  # this thread may always wait; it matters only if the main thread waits for a thread
                waited = min(waited, still) if _waits_for_a_thread(frames.get(main or 0)) else 0.0
            if waited > waits or (thread == main and waited >= waits):
                waits, what = waited, call[1]
        self._calls = calls
        return waits, what

    def _pending(self, numbers: dict[str, int], still: float) -> Optional[Collective]:
        """Return the incomplete collective if the main thread has not moved. Query torch once for each position."""
        if not numbers or still < min(_SOON, self.timeout / 2):
            return None
        at = (self._main[0], str(numbers))
        if self._recorded[0] != at or self._recorded[1] is not None:
            self._recorded = (at, _collectives.last())
        found = self._recorded[1]
        return found if found is not None and not found.done else None

    def _update_work(self, still: float, now: float) -> tuple[bool, bool, bool]:
        """Return three flags: the process has computed, read or written; it works; it is unknown if it works."""
        if still < min(_SOON, self.timeout / 3) and now - self._progress[1] < self.timeout / 3:
            self._works.clear()
            return True, True, False
        self._works.append(self._work())
        last = self._works[-1]
        while len(self._works) > 2 and last.at - self._works[1].at >= min(self.timeout / 3, 10.0):
            self._works.popleft()
        first = self._works[0]
        if last.at - first.at < 0.3:
            return True, True, False  # the interval is too short for a decision
        if last.since(first):
            self._worked = now
        # Slow data arrives in packets, without activity between them.
        works = now - self._worked < max(self.timeout / 3, _SLOWEST_PACKET)
        return last.is_busy_since(first), works, last.may_have_worked_since(first)

    def _has_progressed(self, numbers: dict[str, int], moves: bool, now: float) -> bool:
        """True if new collectives or batches have started. If neither is known, True if the stack has changed."""
        batches = self._batches()
        if not numbers and batches is None:
            return moves
        progress = (str(numbers), batches)
        if progress == self._progress[0]:
            return False
        self._progress = (progress, now)
        return True

    def _batches(self) -> Optional[tuple[int, ...]]:
        """Return the numbers of started batches of Lightning's Trainer; ``None`` if there is no Trainer."""
        trainer = self._trainer() if self._trainer is not None else None
        if trainer is None:
            for frame in main_frames():
                path = frame.f_code.co_filename
                if frame.f_code.co_name == "_run_stage" and path.endswith("pytorch/trainer/trainer.py"):
                    trainer = frame.f_locals.get("self")
                    self._trainer = weakref.ref(trainer) if trainer is not None else None
                    break
        try:
            if trainer is None:
                return None
            epoch = trainer.fit_loop.epoch_loop
            evaluations = (epoch.val_loop, trainer.validate_loop, trainer.test_loop)
            return (epoch.batch_progress.total.started, *(loop.batch_progress.total.started for loop in evaluations))
        except Exception:
            return None


class _Clock:
    """A clock that approximates the running time of this process: a long gap between two calls counts as a short
    one."""

    def __init__(self) -> None:
        self._last = self._now = time.monotonic()

    def now(self, most: float = 2.0) -> float:
        real = time.monotonic()
        self._now += min(real - self._last, most)
        self._last = real
        return self._now


def main_frames() -> list[FrameType]:
    """Return the main thread's stack, innermost frame first."""
    return _frames(sys._current_frames().get(threading.main_thread().ident or 0))


def describe() -> str:
    """Format the stacks of the main thread, of threads that communicate, and of those that the program's end waits
    for."""
    main = threading.main_thread().ident
    ours = {thread.ident for thread in threading.enumerate() if thread.name.startswith(THREADS)}
    waited_for = {thread.ident: thread.name for thread in _waited_for_at_exit()}
    parts: list[str] = []
    for thread, frame in sys._current_frames().items():
        others = thread != main and thread not in waited_for and _communication(frame, False) is None
        if thread in ours or others:
            continue
        lines = [line for entry in traceback.extract_stack(frame) for line in _in_lines(entry)]
        if len(lines) > 2 * _MOST_FRAMES:
            lines = [*lines[:8], "  ...", *lines[-2 * _MOST_FRAMES + 8 :]]
        if thread == main:
            parts.insert(0, "\n".join(lines))
        else:
            name = f"thread {waited_for[thread]!r}, which must end first" if thread in waited_for else "another thread"
            parts.append(f"{name}:\n" + "\n".join(lines))
    return "\n".join(parts)


def _in_lines(entry: traceback.FrameSummary) -> list[str]:
    """Format a frame as in a traceback. Line breaks in the names of files and functions are escaped."""
    at = f'  File "{printable(entry.filename)}", line {entry.lineno}, in {printable(entry.name)}'
    return [at, f"    {printable(entry.line)}"] if entry.line else [at]


def describe_in_short() -> list[str]:
    """Format, in short form, the stacks of the main thread and of threads that the program's end waits for."""
    lines = _in_short(main_frames(), MOST_FRAMES)
    for thread in _waited_for_at_exit()[:2]:
        frames = _frames(sys._current_frames().get(thread.ident or 0))
        lines += [printable(f"thread {thread.name!r}, which must end first:"), *_in_short(frames, MOST_FRAMES // 4)]
    return lines[-MOST_FRAMES:]


def _in_short(frames: list[FrameType], most: int) -> list[str]:
    """Return a line for each frame of the user's code, for the innermost frame, and for each gap between them."""
    lines: list[str] = []
    left_out = 0
    for number, frame in enumerate(frames):  # innermost first
        if number and not _is_of_user(frame):
            left_out += 1
            continue
        if left_out:
            lines.append(f"... {left_out} frame{'s' * (left_out > 1)} of libraries")
            left_out = 0
        (entry,) = traceback.extract_stack(frame, 1)
        source = f": {entry.line}" if entry.line else ""
        lines.append(printable(f"{entry.filename}:{entry.lineno} in {entry.name}{source}")[:512])
    if len(lines) > most:
        lines = [*lines[: most - 2], "...", lines[-1]]
    return lines[::-1]


def _waits_for_a_thread(main: Optional[FrameType]) -> bool:
    """True if the main thread waits for a lock, a queue, a future or the end of a thread."""
    return main is None or main.f_globals.get("__name__") in _WAITING_MODULES


def _is_at_end() -> bool:
    """True if the main thread waits for other threads at the end of the program."""
    frames = main_frames()
    return bool(frames) and frames[-1].f_code.co_name == "_shutdown" and _is_module(frames[-1], "threading")


def _waited_for_at_exit() -> list[threading.Thread]:
    """Return the threads that the interpreter waits for at the end of the program."""
    if not _is_at_end():
        return []
    return [one for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]


def _is_module(frame: FrameType, name: str) -> bool:
    return frame.f_globals.get("__name__") == name


def _frames(frame: Optional[FrameType]) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _signature(frame: Optional[FrameType]) -> int:
    return hash(tuple((id(f.f_code), f.f_lasti) for f in _frames(frame)))


def _place(frame: FrameType) -> str:
    """Return the position in the user's code, or the innermost frame if the stack has no user code."""
    own = next((f for f in _frames(frame) if _is_of_user(f)), None)
    if own is None:  # at the program's end, the stack may have no user code
        waited_for = ", ".join(repr(thread.name) for thread in _waited_for_at_exit()[:4])
        if waited_for:
            return f"{_AT_END}, which waits for thread {waited_for}"[:512]
        own = frame
    return printable(f"{os.path.basename(own.f_code.co_filename)}:{own.f_lineno} in {own.f_code.co_name}")[:512]


def _is_of_user(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    if path.startswith("<"):  # code without a file: the program itself, or generated code, such as a namedtuple's
        is_program = _is_module(frame, "__main__") and "__file__" not in frame.f_globals
        return is_program or path.startswith("<ipython-input")
    return _is_file_of_user(path)


@lru_cache(maxsize=1024)
def _is_file_of_user(path: str) -> bool:
    path = path.replace("\\", "/")
    if "/site-packages/" in path or "/dist-packages/" in path:
        return False
    return not path.startswith(_LIBRARIES) and "/lightning_patches/" not in path


def _communication(frame: FrameType, has_group: bool) -> Optional[tuple[FrameType, str]]:
    """Return the outermost frame of a thread's current call into ``torch.distributed``, and the call's name."""
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


def _c_call(frame: FrameType) -> str:
    """Return the C function that a frame calls: an operator, or a method of a process group, handle or store; or "".

    It reads the frame's variables, so call it only for a frame that has not moved.
    """
    variables = frame.f_locals
    if frame.f_code.co_filename.endswith("torch/_ops.py"):
        operator = variables.get("self")
        name = getattr(operator, "_qualified_op_name", None) or getattr(operator, "_name", None) or ""
        namespace, _, name = str(name).partition("::")
        return name.partition(".")[0] if namespace in _C_OPERATORS else ""
    for root, *path in _names_at(frame.f_code, frame.f_lasti):
        value = variables.get(root, frame.f_globals.get(root))
        for name in ["", *path]:
            if name:
                value = getattr(value, "__dict__", {}).get(name)  # unlike getattr, runs no property of the user's class
            owner = getattr(value, "__self__", None)  # the object, if value is a bound method
            if path and type(value).__module__.startswith(_C_CLASSES):
                return path[-1]
            if type(owner).__module__.startswith(_C_CLASSES):
                return str(getattr(value, "__name__", path[-1] if path else root))
    return ""


@lru_cache(maxsize=256)
def _names_at(code: CodeType, position: int) -> tuple[tuple[str, ...], ...]:
    """Return the names in the current line up to the call: ``(("self", "store", "get"), ("key",))``."""
    by_line: dict[Optional[int], list[list[str]]] = {}
    line = None
    for instruction in dis.get_instructions(code):
        if instruction.offset > position:
            break
        starts: Any = instruction.starts_line  # from Python 3.13 on, this is a bool and not the line number
        if starts:
            line = getattr(instruction, "line_number", None) or starts
        named = by_line.setdefault(line, [])
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")) and named:
            named[-1] += [str(name) for name in names]
        elif instruction.opname.startswith(("LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")):
            named += [[str(name)] for name in names]
    return tuple(map(tuple, by_line.get(line, [])))
