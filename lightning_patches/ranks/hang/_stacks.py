"""Looks at the Python stacks of this process: does it move, does it work, and does it wait for other ranks?"""

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
"""Seconds after which a rank that stands still is looked at more closely. Healthy ones hardly ever do for so long."""


_SLOWEST_PACKET = 3.0
"""Seconds between two packets of a connection that counts as alive."""


@dataclass(frozen=True)
class View:
    """What a rank tells of itself again and again.

    Args:
        place: where the main thread is in the user's code, ``"train.py:12 in training_step"``.
        at_end: whether its program has come to its end.
        waits: how long the rank has waited for others in one call, in seconds; 0 if it does not wait.
        what: the call it waits in, ``"barrier"``.
        numbers: how many collectives it has begun in each of its process groups; empty as long as there is none.
        pending: the collective that it waits in, if torch's flight recorder knows it.
        still: for how long the main thread has not moved, in seconds.
        idle: for how long it has made no progress, and neither computed nor read nor written, in seconds.
        works: it moves, computes, reads, writes, sends or receives.
        unclear: it is woken, and has sockets of which nothing can be told: it may work.
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
    """Compares a process's stacks with what they were when it last looked.

    Frames can't be told apart from later frames of the same code without holding on to them, and with them to the
    user's tensors. So positions in the code are compared, at moments that are a little irregular, together with the
    sequence numbers of the process groups, which grow with every collective.

    Time counts only while this process runs: a job that was suspended has not stood still.

    Args:
        timeout: in seconds.
        work: what this process has done so far.
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

    def look(self, torch: bool = True) -> View:
        """What this rank does now; without what torch knows of it if ``torch`` is false."""
        now = self._clock.now(2 * self.timeout / _settings.LOOKS + 2.0)
        numbers = _collectives.numbers() if torch else {}
        frames = sys._current_frames()
        main = frames.get(threading.main_thread().ident or 0)
        if main is not None:
            self._look_at_main(main, numbers, now)
        still = now - self._main[1]
        waits, what = self._wait(frames, numbers, still, now)
        pending = self._pending(numbers, still)
        if pending is not None and what in ("", "wait", "wait_tensor"):
            waits, what = max(waits, still), pending.name  # a handle that is waited for, or the device
        while self._changes and now - self._changes[0] > self.timeout:
            self._changes.popleft()
        busy, works, unclear = self._look_at_work(still, now)
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

    def _look_at_main(self, frame: FrameType, numbers: dict[str, int], now: float) -> None:
        signature = hash((_signature(frame), str(numbers)))
        if signature != self._main[0]:
            self._main = (signature, now)
            self._changes.append(now)

    def _wait(
        self, frames: dict[int, FrameType], numbers: dict[str, int], still: float, now: float
    ) -> tuple[float, str]:
        """For how long the thread that has waited for others longest has done so, and in which call."""
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
            if (
                thread != main
            ):  # which may listen all the time: it keeps the job waiting if the main thread waits for it
                waited = min(waited, still) if _waits_for_a_thread(frames.get(main or 0)) else 0.0
            if waited > waits or (thread == main and waited >= waits):
                waits, what = waited, call[1]
        self._calls = calls
        return waits, what

    def _pending(self, numbers: dict[str, int], still: float) -> Optional[Collective]:
        """The collective that is not completed, if the main thread stands still; asked once for each position."""
        if not numbers or still < min(_SOON, self.timeout / 2):
            return None
        at = (self._main[0], str(numbers))
        if self._recorded[0] != at or self._recorded[1] is not None:
            self._recorded = (at, _collectives.last())
        found = self._recorded[1]
        return found if found is not None and not found.done else None

    def _look_at_work(self, still: float, now: float) -> tuple[bool, bool, bool]:
        """Whether this process has computed, read or written, whether it works in any way that can be seen, and whether
        it may work in one that can't."""
        if still < min(_SOON, self.timeout / 3) and now - self._progress[1] < self.timeout / 3:
            self._works.clear()
            return True, True, False
        self._works.append(self._work())
        last = self._works[-1]
        while len(self._works) > 2 and last.at - self._works[1].at >= min(self.timeout / 3, 10.0):
            self._works.popleft()
        first = self._works[0]
        if last.at - first.at < 0.3:
            return True, True, False  # too short to tell
        if last.since(first):
            self._worked = now
        # Slow data comes in packets: between two of them nothing is to be seen.
        works = now - self._worked < max(self.timeout / 3, _SLOWEST_PACKET)
        return last.is_busy_since(first), works, last.may_have_worked_since(first)

    def _has_progressed(self, numbers: dict[str, int], moves: bool, now: float) -> bool:
        """Whether collectives or batches have been begun since; where neither is known, whether the stack changes."""
        batches = self._batches()
        if not numbers and batches is None:
            return moves
        progress = (str(numbers), batches)
        if progress == self._progress[0]:
            return False
        self._progress = (progress, now)
        return True

    def _batches(self) -> Optional[tuple[int, ...]]:
        """How far Lightning's Trainer is, if there is one; found once, and held weakly."""
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
            return (
                epoch.batch_progress.total.started,
                *(loop.batch_progress.total.started for loop in evaluations),
            )
        except Exception:
            return None


class _Clock:
    """Seconds for which this process has run, more or less: a long time without a look is cut short."""

    def __init__(self) -> None:
        self._last = self._now = time.monotonic()

    def now(self, most: float = 2.0) -> float:
        real = time.monotonic()
        self._now += min(real - self._last, most)
        self._last = real
        return self._now


def main_frames() -> list[FrameType]:
    """The main thread's stack, innermost first."""
    return _frames(sys._current_frames().get(threading.main_thread().ident or 0))


def describe() -> str:
    """The main thread's stack, and those of other threads that communicate or keep the program from its end."""
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
            what = f"thread {waited_for[thread]!r}, which has to end first" if thread in waited_for else "thread"
            parts.append(f"{what}, beside the main one:\n" + "\n".join(lines))
    return "\n".join(parts)


def _in_lines(entry: traceback.FrameSummary) -> list[str]:
    """A frame, as a traceback has it; nothing that a file or function is called begins a line of its own."""
    at = f'  File "{printable(entry.filename)}", line {entry.lineno}, in {printable(entry.name)}'
    return [at, f"    {printable(entry.line)}"] if entry.line else [at]


def describe_in_short() -> list[str]:
    """The main thread's stack, and those of threads that keep the program from its end, outermost frames first."""
    lines = _in_short(main_frames(), MOST_FRAMES)
    for thread in _waited_for_at_exit()[:2]:
        frames = _frames(sys._current_frames().get(thread.ident or 0))
        lines += [printable(f"thread {thread.name!r}, which has to end first:"), *_in_short(frames, MOST_FRAMES // 4)]
    return lines[-MOST_FRAMES:]


def _in_short(frames: list[FrameType], most: int) -> list[str]:
    """A line for each frame of the user's code and for the innermost one, and one for all between two of them."""
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
    """Whether the main thread is in a lock, a queue, a future or the end of a thread."""
    return main is None or main.f_globals.get("__name__") in _WAITING_MODULES


def _is_at_end() -> bool:
    """Whether the main thread waits for the others to end, as the last thing that it does in Python."""
    frames = main_frames()
    return bool(frames) and frames[-1].f_code.co_name == "_shutdown" and _is_module(frames[-1], "threading")


def _waited_for_at_exit() -> list[threading.Thread]:
    """The threads that the interpreter waits for, if the main thread is at its end."""
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
    """Where the user's code is; the inner end of the stack if there is none of it."""
    own = next((f for f in _frames(frame) if _is_of_user(f)), None)
    if own is None:  # at the program's end the interpreter calls nothing of the user's
        waited_for = ", ".join(repr(thread.name) for thread in _waited_for_at_exit()[:4])
        if waited_for:
            return f"{_AT_END}, which waits for thread {waited_for}"[:512]
        own = frame
    return printable(f"{os.path.basename(own.f_code.co_filename)}:{own.f_lineno} in {own.f_code.co_name}")[:512]


def _is_of_user(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    if path.startswith("<"):  # made from text, as a namedtuple is; the program itself only where it has no file
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


# ---------------------------------------------------------------- a call into C


def _c_call(frame: FrameType) -> str:
    """Name of the method of a process group, a handle or a store, or of the operator, that this frame calls; "" for
    none. The frame's variables are looked at, which is why only a frame is asked that has stood still."""
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
                value = getattr(value, "__dict__", {}).get(name)  # no property of the user's is run
            owner = getattr(value, "__self__", None)  # of a bound method
            if path and type(value).__module__.startswith(_C_CLASSES):
                return path[-1]
            if type(owner).__module__.startswith(_C_CLASSES):
                return str(getattr(value, "__name__", path[-1] if path else root))
    return ""


@lru_cache(maxsize=256)
def _names_at(code: CodeType, position: int) -> tuple[tuple[str, ...], ...]:
    """What the line that is being executed speaks of, up to the call: ``(("self", "store", "get"), ("key",))``."""
    by_line: dict[Optional[int], list[list[str]]] = {}
    line = None
    for instruction in dis.get_instructions(code):
        if instruction.offset > position:
            break
        starts: Any = instruction.starts_line  # from Python 3.13 on, whether it starts a line
        if starts:
            line = getattr(instruction, "line_number", None) or starts
        named = by_line.setdefault(line, [])
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")) and named:
            named[-1] += [str(name) for name in names]
        elif instruction.opname.startswith(("LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")):
            named += [[str(name)] for name in names]
    return tuple(map(tuple, by_line.get(line, [])))
