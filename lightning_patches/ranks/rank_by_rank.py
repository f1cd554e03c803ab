"""Run a block in one rank of a node after the other, and not in all ranks at the same time.

Four ranks that each load a checkpoint of 20 GB into host memory before they move it to their GPU need 80 GB at the
peak. If they take turns, they need 20 GB::

    from lightning_patches import rank_by_rank

    with rank_by_rank():
        model = AutoModel.from_pretrained(path).to(device)

``LIGHTNING_PATCHES_RANK_BY_RANK=1`` (or another number of ranks at a time) puts every ``load_from_checkpoint`` of
Lightning into such a block. That function reads a checkpoint, builds a model and releases the checkpoint without
communication. The variable does not affect the Trainer's ``ckpt_path``: the Trainer keeps that checkpoint until all
ranks have restored it, so turns would not lower the peak, and strategies communicate while they restore.

Ranks take turns with file locks (``flock``) in the node's temporary directory. The system releases a lock when its
process dies, and locks work before a process group exists. The owner of a lock writes its identity into the file, so
that the other ranks detect a rank that died inside the block.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import socket
import sys
import threading
import time
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, Optional

from lightning_patches import notices, system
from lightning_patches.errors import LightningPatchesError
from lightning_patches.ranks import _node, _processes

VARIABLE = "LIGHTNING_PATCHES_RANK_BY_RANK"
_TURNS = "_LIGHTNING_PATCHES_TURNS"
"""Environment variable with the turns of this process's ancestors."""
_POLL = 0.05
_LONGEST_NOTE = 400

Record = Dict[str, Any]


class RankByRankError(LightningPatchesError, RuntimeError):
    """A rank of this node died while it had its turn."""


class RankByRankTimeoutError(RankByRankError, TimeoutError):
    """This rank did not get its turn in time."""


class _Turn:
    """The turn of this process, if it has one. Its threads share the turn, and the last thread ends it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = self.pid = 0
        self.turns: Optional[_Turns] = None
        self.descriptor = -1


_turn = _Turn()


@contextlib.contextmanager
def rank_by_rank(at_once: int = 1, timeout: float = 1800.0, name: str = "") -> Iterator[None]:
    """Let the ranks of this node run the block in turns.

    A rank does not wait for a rank that has not reached the block, so a rank may skip the block. Don't call a
    collective inside (a barrier, a sharded load): ranks in the collective would wait for ranks that wait for their
    turn.

    Does nothing in a process that is not one of several ranks. Warns and does nothing if the system has no file locks
    (Windows) or no directory for them. A nested block shares the turn of the outer block, also in another thread, or
    in a process that was started inside the block.

    Args:
        at_once: number of ranks of a node that may be inside at the same time; must be the same in all ranks.
        timeout: seconds to wait for the turn.
        name: ranks take turns only in blocks with the same name.

    Raises:
        RankByRankError: a rank died inside, or raised an error inside and then ended. The message names the rank.
            Raised before or after the block runs.
        RankByRankTimeoutError: this rank did not get its turn in time. The message names the ranks that are inside.
        ValueError: ``at_once`` is not an integer of at least 1, or ``timeout`` is not a number of at least 0.
    """
    if isinstance(at_once, bool) or not isinstance(at_once, int) or at_once < 1:
        raise ValueError(f"at_once must be a whole number, at least 1, not {at_once!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise ValueError(f"timeout must be a number of seconds, at least 0, not {timeout!r}")
    with _turn.lock:  # a second thread waits here until the first one has the turn, and then shares it
        if _turn.depth == 0:
            _begin(at_once, timeout, name)
        _turn.depth += 1
    error = ""
    try:
        yield
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}"[:_LONGEST_NOTE]
        raise
    finally:
        with _turn.lock:
            _turn.depth -= 1
            turns = _turn.turns if _turn.depth == 0 and _turn.pid == os.getpid() else None
            if turns is not None:
                turns.give_back(_turn.descriptor, error)
                _turn.turns = None
    if turns is not None:
        turns.check()


def _begin(at_once: int, timeout: float, name: str) -> None:
    """Wait for the turn, if this process is one of several ranks."""
    identity = _identity()
    if identity is None:
        return
    missing = system.lacks(system.TURNS)
    try:
        if missing:
            raise OSError(f"this system lacks {missing}")
        turns = _Turns(f"{identity.key} {name}", at_once, {"rank": identity.rank, "local_rank": identity.local_rank})
        descriptor = turns.take(timeout)
    except RankByRankError:
        raise
    except OSError as error:
        notices.warn_once("rank-by-rank", f"rank_by_rank needs file locks, so ranks take no turns: {error}", True)
        return
    if descriptor is not None:
        _turn.turns, _turn.descriptor, _turn.pid = turns, descriptor, os.getpid()


class _Turns:
    """The locks of one node for blocks of one name.

    Args:
        key: identifies job and name; the same in all ranks.
        at_once: number of locks.
        me: identity of this rank.
    """

    def __init__(self, key: str, at_once: int, me: Record) -> None:
        digest = _node.digest(key)
        directory = _node.directory("turns")
        self._paths = [os.path.join(directory, f"{digest}-{descriptor}") for descriptor in range(at_once)]
        pid = os.getpid()
        started = _processes.start_time(pid)
        self._me = {**me, "host": socket.gethostname(), "pid": pid, "started": started}
        # An older job may have used the same port: ignore records from before this process started.
        self._born = _imported if started is None else _processes.in_seconds(started)
        self._turn = ""

    def take(self, timeout: float) -> Optional[int]:
        """Wait for a turn.

        Returns:
            The descriptor of the lock; ``None`` if an ancestor of this process has the turn.
        """
        deadline = time.monotonic() + timeout
        while True:
            taken: Optional[int] = None
            inside: list[Record] = []
            with contextlib.ExitStack() as unused:
                for path in self._paths:
                    descriptor, free = _lock(path)
                    record = _read(descriptor)
                    if not free or taken is not None:
                        os.close(descriptor)
                    else:
                        taken = descriptor
                        unused.callback(os.close, taken)
                    self._raise_if_dead(record, free)
                    if not free:
                        inside.append(record.get("inside") or {})
                        if self._is_of_parent(inside[-1]):
                            return None
                if taken is not None:
                    record = _read(taken)
                    me = {**self._me, "since": _now()}
                    _write(taken, {"inside": me, "raised": self._raised(record)})
                    self._turn = _name_of_turn(me)
                    os.environ[_TURNS] = " ".join([*_inherited_turns(), self._turn])
                    unused.pop_all()
                    return taken
            if time.monotonic() >= deadline:
                holders = "; ".join(self._describe(record) for record in inside)
                raise RankByRankTimeoutError(
                    f"[{_name(self._me)}] did not get its turn within {timeout:g} s. Inside: {holders}. Set a "
                    "longer `timeout` if that rank is only slow, or find out why it does not continue."
                )
            time.sleep(_POLL)

    def give_back(self, descriptor: int, error: str = "") -> None:
        """End the turn.

        Args:
            descriptor: the result of :meth:`take`.
            error: the error that the block raised, or "". If this process ends because of it, the other ranks raise.
        """
        os.environ[_TURNS] = " ".join(turn for turn in _inherited_turns() if turn != self._turn)
        raised = self._raised(_read(descriptor))
        if error:
            atexit.register(self._on_exit)
            raised.append({**self._me, "since": _now(), "error": error})
        _write(descriptor, {"inside": None, "raised": raised})
        _unlock(descriptor)
        os.close(descriptor)

    def check(self) -> None:
        """Raise RankByRankError if a rank has died inside the block."""
        for path in self._paths:
            descriptor, free = _lock(path)
            record = _read(descriptor)
            os.close(descriptor)
            self._raise_if_dead(record, free)

    def _raise_if_dead(self, record: Record, free: bool) -> None:
        inside = record.get("inside")
        if inside and self._is_of_this_job(inside) and (free or self._is_gone(inside)):
            state = _processes.condition(inside["pid"], inside["started"])
            raise RankByRankError(
                f"[{_name(self._me)}] {_name(inside)} (host {inside['host']}, pid {inside['pid']}) died during its turn"
                f": {state}. This rank stops, since the job can no longer complete."
            )
        for other in self._raised(record):
            if (
                other["pid"] != self._me["pid"]
                and self._is_gone(other)
                and not os.path.exists(self._recovery_file(other))
            ):
                raise RankByRankError(
                    f"[{_name(self._me)}] {_name(other)} (host {other['host']}, pid {other['pid']}) raised an error "
                    f"during its turn, and has ended: {other['error']}"
                )

    def _on_exit(self) -> None:
        """Create a file if the program has caught the block's error and ends normally."""
        if getattr(sys, "last_value", None) is None and os.getpid() == self._me["pid"]:
            with contextlib.suppress(OSError):
                os.close(os.open(self._recovery_file(self._me), os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))

    def _recovery_file(self, record: Record) -> str:
        return f"{self._paths[0]}-{record['pid']}-{record['started']}"

    def _raised(self, record: Record) -> list[Record]:
        return [other for other in record.get("raised", []) if self._is_of_this_job(other)]

    def _is_of_parent(self, inside: Record) -> bool:
        """True if this process or an ancestor was started during the turn.

        Read from the environment, since the process tree does not show this: rank 0 is the parent of the other ranks
        of Lightning's launcher, but started them before its turn.
        """
        return bool(inside) and _name_of_turn(inside) in _inherited_turns()

    def _is_of_this_job(self, record: Record) -> bool:
        return float(record.get("since", 0.0)) >= self._born

    def _is_gone(self, record: Record) -> bool:
        return record.get("host") == self._me["host"] and _processes.is_gone(record["pid"], record["started"])

    def _describe(self, record: Record) -> str:
        if not record:
            return "a rank that has just started or ended"
        state = _processes.condition(record["pid"], record["started"])
        return f"{_name(record)} (pid {record['pid']}) for {_now() - record['since']:.0f} s, {state}"


def install_from_environment() -> None:
    """Make ranks take turns in Lightning's ``load_from_checkpoint`` if ``LIGHTNING_PATCHES_RANK_BY_RANK`` is set."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text or text == "0":
        return
    if not text.isdecimal():
        text = notices.cut(text)
        notices.notice(f"{VARIABLE}={text} is invalid. Use the number of ranks that may load at the same time.", True)
        return
    import wrapt

    for root in ("lightning.pytorch", "pytorch_lightning"):
        wrapt.register_post_import_hook(lambda module: _install(module, int(text)), f"{root}.core.saving")


def _install(module: ModuleType, at_once: int) -> None:
    original = getattr(module, "_load_from_checkpoint", None)
    if original is None or hasattr(original, "_lightning_patches_turns"):
        return

    @functools.wraps(original)
    def load_from_checkpoint(*args: Any, **kwargs: Any) -> Any:
        return _in_turns(original, at_once, args, kwargs)

    load_from_checkpoint._lightning_patches_turns = at_once  # type: ignore[attr-defined]
    root = module.__name__.rpartition(".core.")[0]
    for name in ("saving", "module", "datamodule"):  # modules that are already imported have a copy of the function
        holder = sys.modules.get(f"{root}.core.{name}")
        if getattr(holder, "_load_from_checkpoint", None) is original:
            setattr(holder, "_load_from_checkpoint", load_from_checkpoint)  # noqa: B010


def _in_turns(function: Callable[..., Any], at_once: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function in a turn. If this rank does not get its turn in time, warn and call the function anyway."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(rank_by_rank(at_once, name="load_from_checkpoint"))
        except RankByRankTimeoutError as error:
            notices.warn_once("rank-by-rank", f"{VARIABLE}: loading without a turn. {error}", all_ranks=True)
        return function(*args, **kwargs)


def _identity() -> Any:
    from lightning_patches.ranks.hang import _identity, _stacks

    return _identity.find(_stacks.main_frames())


def _name(record: Record) -> str:
    rank = record.get("rank")
    return f"rank {rank}" if rank is not None else f"local rank {record.get('local_rank')}"


def _now() -> float:
    with contextlib.suppress(AttributeError):  # CLOCK_BOOTTIME exists only on Linux
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


_imported = _now()


def _name_of_turn(record: Record) -> str:
    return f"{record['host']}:{record['pid']}:{record['since']}"


def _inherited_turns() -> list[str]:
    return os.environ.get(_TURNS, "").split()


def _lock(path: str) -> tuple[int, bool]:
    """Open the file and try to lock it. Return the descriptor, and True if this process has the lock."""
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return descriptor, False
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, True


def _unlock(descriptor: int) -> None:
    """Release the lock. Closing the descriptor is not enough, since a process forked inside the block has a copy."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _read(descriptor: int) -> Record:
    try:
        found = json.loads(os.pread(descriptor, 1 << 20, 0) or b"{}")
    except ValueError:
        return {}  # another process is writing it
    return found if isinstance(found, dict) else {}


def _write(descriptor: int, record: Record) -> None:
    data = json.dumps(record).encode()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)
