"""The watch of a rank: sample this process, send its state to rank zero, and answer requests."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import random
import socket
import sys
import threading
import time
import traceback
from typing import Any, ClassVar, Optional

from lightning_patches import notices, system
from lightning_patches.ranks import _node, _processes
from lightning_patches.ranks.hang import (
    _collectives,
    _gpus,
    _hub,
    _identity,
    _messages,
    _report,
    _secret,
    _settings,
    _stacks,
    _wire,
)
from lightning_patches.ranks.hang._identity import Identity
from lightning_patches.ranks.hang._messages import FAILED, FINISHED, STOPPED, Message
from lightning_patches.ranks.hang._registry import THREADS, Job, Record

_ATTEMPTS_AS_CHILD = 20
"""Samples after which the watch ends in a :mod:`multiprocessing` child that is no rank (a DataLoader worker)."""
_LONGEST_LOOK = 5.0
_LONGEST_PAUSE = 2.0
"""Maximum seconds between two attempts to connect to rank zero."""
_LATE = 10.0
"""Seconds after which a missing rank of this node is assumed to be in another container."""
_ERRORS = 5
"""Consecutive internal errors after which the watch stops. An import that runs in the main thread can cause some."""


class Watch:
    """The watch of one rank. Created by :func:`lightning_patches.watch_hangs`.

    Args:
        timeout: in seconds.
        abort: end all ranks after the report.
    """

    _current: ClassVar[Optional[Watch]] = None
    _start_lock: ClassVar[threading.Lock] = threading.Lock()
    _registered: ClassVar[bool] = False

    def __init__(self, timeout: float, abort: bool) -> None:
        self.timeout, self.abort = timeout, abort
        self._stopped = threading.Event()
        self._leaving = threading.Event()
        self._sampling = threading.Lock()
        self.identity: Optional[Identity] = None
        self._job: Optional[Job] = None
        self._exchange: Optional[_secret.Exchange] = None
        self._exchanges: list[_secret.Exchange] = []
        """Exchanges that are no longer needed, but may still run a call into torch."""
        self._hub: Optional[_hub.Hub] = None
        self._connection: Optional[_wire.Connection] = None
        self._hello_sent: Optional[Identity] = None
        self._has_met_zero = False
        self._heard_at = self._next_try = time.monotonic()
        self._reported_wait = 0.0
        self._last_report: list[str] = []
        """The last report of this rank, without times."""
        self._port_is_taken = False
        self._began = time.monotonic()
        self._sampler = _stacks.Sampler(timeout, self._work)
        self._dump = _processes.Dump()
        self._thread = threading.Thread(target=self._run, name=f"{THREADS} watch", daemon=True)

    @classmethod
    def start(cls, timeout: float, abort: bool) -> Watch:
        """Start the watch of this process, or change its settings. It stays off if the system lacks a feature."""
        missing = system.lacks(system.WATCH)
        if missing:
            notices.notice_once("hang", f"{_settings.needs(missing)}: ranks are not watched")
            watch = cls(timeout, abort)
            watch._stopped.set()
            return watch
        with cls._start_lock:
            current = cls._current
            if current is not None and not current._stopped.is_set():
                current.timeout = current._sampler.timeout = timeout
                current.abort = abort
                return current
            watch = cls._current = cls(timeout, abort)
            if not cls._registered:
                cls._registered = True
                atexit.register(cls._on_exit)
                system.after_fork(cls._after_fork)
            util = sys.modules.get("multiprocessing.util")
            if util is not None and notices.is_child():  # its atexit handlers never run
                util.Finalize(None, cls._on_exit, exitpriority=0)
        watch._thread.start()
        return watch

    def stop(self) -> None:
        """Stop the watch, and inform rank zero."""
        self._leave(STOPPED)

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        attempts = errors = 0
        while not self._stopped.is_set():
            try:
                with self._sampling:
                    view = self._sampler.sample(torch=not self._leaving.is_set())
                    if not self._leaving.is_set():
                        self.identity = _identity.find(_stacks.main_frames()) or self.identity
                if self.identity is None and notices.is_child():
                    attempts += 1
                    if attempts > _ATTEMPTS_AS_CHILD:
                        return
                leaving = self._leaving.is_set()
                if self.identity is not None and (leaving or self._register(self.identity)):
                    self._send_state(self.identity, view)
                    self._check_alone(self.identity, view)
                self._pause()
                errors = 0
            except Exception as error:  # a bug here must not end the training
                errors += 1
                if errors == _ERRORS:
                    name = self.identity.name if self.identity is not None else "this process"
                    _report.say(
                        f"the hang watch has stopped in {name}, which is no longer watched. Please report this error: "
                        f"{type(error).__name__}: {error}"
                    )
                    return
                self._stopped.wait(0.2)

    def _pause(self) -> None:
        end = time.monotonic() + _settings.pause(self.timeout) * random.uniform(0.8, 1.2)
        while not self._stopped.is_set():
            rest = end - time.monotonic()
            connection = self._connection
            if rest <= 0:
                return
            if connection is None or not connection.open:
                self._stopped.wait(rest)
            elif connection.wait(rest):
                for message in connection.receive():
                    self._handle(connection, message)

    def _work(self) -> _processes.Work:
        return self._job.work() if self._job is not None else _processes.work(os.getpid())

    def _register(self, identity: Identity) -> bool:
        """Register this process as the rank. Stop the watch if another process is that rank."""
        if self._job is None:
            try:
                self._job = Job(identity.key)
            except OSError as error:
                _report.say(f"{identity.name} is not watched for hangs: {error}")
                self._stopped.set()
                return False
        pid = os.getpid()
        thread = threading.get_native_id()
        started = _processes.start_time(pid)
        program = _processes.program(pid)
        record = Record(identity.rank, pid, started, thread, self._dump.signal, self._dump.file, program)
        if not self._job.register(identity.local_rank, record):
            self._stopped.set()
            self._warn_of_other_job(identity)
            return False
        return True

    def _warn_of_other_job(self, identity: Identity) -> None:
        """Warn that two jobs use the same port if the other process with this rank is no ancestor of this one."""
        other = self._job.record(identity.local_rank) if self._job is not None else None
        if other is None or other.pid in _processes.ancestors(os.getpid()) or identity.local_rank != 0:
            return
        _report.say(
            f"this process and process {other.pid}, which is running, are both {identity.name} of a job with "
            f"MASTER_PORT={os.environ.get('MASTER_PORT')}. Two jobs with the same port wait for each other: give this "
            "job another MASTER_PORT, or end the other job. This process is not watched for hangs."
        )

    def _send_state(self, identity: Identity, view: _stacks.View) -> None:
        now = time.monotonic()
        if self._leaving.is_set():
            if self._connection is not None:
                self._connection.send({"t": "beat", **dataclasses.asdict(view)})
            return
        if self._connection is None or not self._connection.open:
            if now < self._next_try:
                return
            self._connection = self._hello_sent = None
            self._next_try = now + min(self.timeout / 5, _LONGEST_PAUSE)
            self._connection = self._find_hub(identity)
        self._open_port(identity)
        connection = self._connection
        if connection is None or self._stopped.is_set():
            return
        if self._hello_sent != identity:
            connection.send(self._hello(identity))
            self._hello_sent, self._heard_at, self._has_met_zero = identity, time.monotonic(), True
        connection.send({"t": "beat", **dataclasses.asdict(view)})

    def _find_hub(self, identity: Identity) -> Optional[_wire.Connection]:
        """Connect to rank zero through the socket file on its node, or else through its port if the secret is known."""
        job = self._job
        assert job is not None
        if identity.rank == 0 and self._hub is None:
            self._hub = _hub.Hub(job, self)
        connection = _wire.connect(job.socket, job.secret()) if os.path.exists(job.socket) else None
        if connection is not None and identity.rank != 0:
            self._stop_exchange()
        if connection is not None or identity.rank == 0 or (identity.one_node and not self._is_late):
            return connection
        self._exchange = self._exchange or _secret.Exchange(identity)
        secret = self._exchange.secret
        if secret is None:
            return None
        for address in self._addresses(identity):
            for port in _secret.ports(secret, identity):
                connection = _wire.connect((address, port), secret)
                if connection is not None:
                    return connection
        return None

    def _stop_exchange(self) -> None:
        """Stop the exchange of the secret, which is not needed if all ranks use the socket file."""
        if self._exchange is not None:
            self._exchange.stop(wait=False)
            self._exchanges.append(self._exchange)
            self._exchange = None

    @property
    def _is_late(self) -> bool:
        """True if a missing rank of this node can't use the socket file, since it would have connected before."""
        return time.monotonic() - self._began > min(self.timeout / 4, _LATE)

    def _addresses(self, identity: Identity) -> tuple[str, ...]:
        return _wire.LOOPBACK if identity.one_node else tuple(filter(None, [identity.address]))

    def _open_port(self, identity: Identity) -> None:
        """In rank zero, listen on a port after a rank of another node or container has requested the secret."""
        hub = self._hub
        if hub is None or hub.server.listens_on_port or self._port_is_taken:
            return
        if identity.one_node and (hub.server.is_complete or not self._is_late):
            self._stop_exchange()
            return
        self._exchange = self._exchange or _secret.Exchange(identity)
        secret = self._exchange.secret
        if secret is None:
            return
        ports = _secret.ports(secret, identity)
        self._port_is_taken = not hub.server.listen_on_port(ports, secret)
        if self._port_is_taken:
            _report.say(
                f"ranks of other nodes and containers are not watched: ports {', '.join(map(str, ports))} are in use. "
                f"Set {_secret.PORT_VARIABLE} to a free port, the same in all ranks."
            )

    def _hello(self, identity: Identity) -> Message:
        return {
            "t": "hello",
            "rank": identity.rank,
            "local_rank": identity.local_rank,
            "node": identity.node,
            "node_id": _node.node_id(),
            "host": socket.gethostname()[:256],
            "pid": os.getpid(),
        }

    def _handle(self, connection: _wire.Connection, message: Message) -> None:
        self._heard_at = time.monotonic()
        kind, job = message["t"], self._job
        if kind == "taken":
            self._stopped.set()  # another process is this rank
        elif kind == "report":
            rank = self.identity.local_rank if message["children"] and self.identity is not None else None
            with self._sampling:
                torch = not self._leaving.is_set()
                # Send the current state with the report, since the last message may be old.
                connection.send({"t": "beat", **dataclasses.asdict(self._sampler.sample(torch))})
                connection.send(
                    {
                        "t": "report",
                        "stack": _stacks.describe()[-_messages.LONGEST_STACK :],
                        "frames": _stacks.describe_in_short(),
                        "collective": str(torch and _collectives.last() or "")[:1024],
                        "recorder": [dataclasses.asdict(one) for one in _collectives.recorded()] if torch else [],
                        "children": job.children(rank) if rank is not None and job is not None else [],
                        "gpus": [line[:256] for line in _gpus.describe()][:64] if message["gpus"] else [],
                    }
                )
        elif kind == "probe" and job is not None:
            outside = job.examine(message["local_rank"], message["lives"])
            answer = dataclasses.asdict(outside)
            answer["stack"] = outside.stack[-_messages.LONGEST_STACK :]
            connection.send({"t": "probed", "local_rank": message["local_rank"], **answer})
        elif kind == "abort" and self.abort and job is not None:
            time.sleep(_hub.GRACE)
            for local_rank in message["silent"]:
                job.end(local_rank)
            self.end()

    def end(self) -> None:
        """End this rank and its children."""
        if self._job is not None:
            with contextlib.suppress(OSError):
                self._job.end_children()
        _report.leave()

    # ---------------------------------------------------------------- without rank zero

    def _check_alone(self, identity: Identity, view: _stacks.View) -> None:
        """Report from this rank if it waits or does not move, and the hub in rank zero is missing or silent."""
        now = time.monotonic()
        stalled = max(view.waits, view.idle)
        if stalled < 1.5 * self.timeout:  # give rank zero time to report
            self._reported_wait, self._last_report = 0.0, []
            return
        if (
            self._connection is not None
            and self._connection.open
            and now - self._heard_at < max(0.7 * self.timeout, 8.0)
        ):
            return
        if stalled < 2 * self._reported_wait:
            return
        at_end = view.at_end and self._reported_wait > 0
        self._reported_wait = stalled
        if self._reported_wait > 0 and view.idle >= self.timeout and not (view.waits or view.works or view.unclear):
            at_end = at_end or self._is_last(identity)
        ends = self.abort and (at_end or (view.waits > 0 and self._all_idle(identity)))
        if self._is_reporter(identity):
            verdict, where, lines = self._own_report(identity, view)
            end = f"Ranks are ended now, with status {_report.STATUS}." if ends else "This rank continues."
            text = _report.in_lines([f"{verdict}.", *lines, f"  {end}"])
            whole = f"{text}\n{_report.in_lines(_report.indented(_stacks.describe(), _report.MOST_OF_A_STACK))}"
            data = {"schema": 1, "verdict": _messages.printable(verdict), "ranks": [], "text": whole}
            again = self._last_report == [where, *lines]
            self._last_report = [where, *lines]
            in_short = _report.in_lines([f"{verdict}.", f"  No change. {end}"]) if again else text
            _report.print_and_write(in_short, whole, data)
        if ends:
            if not at_end:
                self._end_silent_zero()
            self.end()

    def _is_last(self, identity: Identity) -> bool:
        """True if all other ranks have ended."""
        assert self._job is not None
        others = [record for record in self._job.records() if record.pid != os.getpid()]
        return identity.one_node and self._has_met_zero and all(record.gone for record in others)

    def _is_reporter(self, identity: Identity) -> bool:
        """True if this is the first live rank of its node other than rank zero. Only this rank reports."""
        assert self._job is not None
        mine = os.getpid()
        living = sorted(
            (one.rank if one.rank is not None else 1 << 30, one.pid)
            for one in self._job.records()
            if one.rank != 0 and not one.gone
        )
        return not living or living[0][1] == mine

    def _zero(self) -> Optional[Record]:
        assert self._job is not None
        return next((record for record in self._job.records() if record.rank == 0), None)

    def _all_idle(self, identity: Identity) -> bool:
        """True if all ranks, including rank zero, are on this node, and none of them works.

        The job is not ended only because rank zero is unreachable.
        """
        assert self._job is not None
        others = [record for record in self._job.records() if record.pid != os.getpid()]
        if len(others) + 1 < identity.world_size or self._zero() is None:
            return False
        ranks = [record.pid for record in others]
        watchers = {record.pid: [record.thread] for record in others}

        def now() -> dict[int, _processes.Work]:
            return {pid: _processes.work(pid, watchers[pid], [p for p in ranks if p != pid]) for pid in ranks}

        before = now()
        time.sleep(2.0)
        return not any(
            after.since(before[pid]) or after.may_have_worked_since(before[pid]) for pid, after in now().items()
        )

    def _end_silent_zero(self) -> None:
        zero = self._zero()
        if zero is not None and self._job is not None:
            _processes.end(zero.pid, zero.started, [record.pid for record in self._job.records()])

    def _own_report(self, identity: Identity, view: _stacks.View) -> tuple[str, str, list[str]]:
        """Return the report of this rank: its first line, the rank's position, and the other lines."""
        assert self._job is not None
        me = f"{identity.name} (host {socket.gethostname()}, pid {os.getpid()})"
        where = f"at {view.place}"
        does = f"has not moved for {view.idle:.0f} s, {where}"
        if view.waits:
            where = f"in {_report.Call(view.what, max(view.numbers.values(), default=-1))}"
            does = f"has waited {view.waits:.0f} s, {where}"
        verdict, lines = f"{me} {does}, and the watch of rank 0 can't be reached", []
        zero = self._zero()
        if zero is not None:
            outside = self._job.examine(0, lives=True)
            lines.append(f"  rank 0 (pid {zero.pid}): {outside.condition}.")
            lines += _report.indented("\n".join(outside.frames), 8) if outside.stack else []
        elif self._has_met_zero:
            lines.append("  This rank has reached rank 0 before.")
        else:
            lines.append(f"  This rank has never reached rank 0: {self._advice(identity)}")
        lines += [f"  stack of {identity.name}:", *_report.indented("\n".join(_stacks.describe_in_short()), 11)]
        return verdict, where, lines

    def _advice(self, identity: Identity) -> str:
        if identity.one_node:
            return "rank 0 has not started, or is not watched."
        if self._exchange is None or self._exchange.secret is None:
            return (
                "rank 0 has not started, or this node can't know its secret. Set "
                f"{_secret.VARIABLE} to the same {_secret.SHORTEST} characters or more on all nodes."
            )
        ports = ", ".join(map(str, _secret.ports(self._exchange.secret, identity)))
        return (
            f"no watch answers at {identity.address}, ports {ports}: rank 0 has not started, is not watched, or "
            f"a firewall is between the nodes ({_secret.PORT_VARIABLE} sets the port)."
        )

    # ---------------------------------------------------------------- exit and fork

    def _leave(self, kind: str, detail: str = "") -> None:
        """Inform rank zero how this rank ends. A finished rank is still watched, since its exit handlers may hang."""
        if kind != FINISHED:
            self._stopped.set()
        connection = self._connection
        if connection is not None and connection.open:
            connection.send({"t": "bye", "kind": kind, "detail": detail[-_messages.LONGEST_ERROR :]})
            if self._hub is None and kind != FINISHED:
                connection.close()
        for exchange in (*self._exchanges, *filter(None, [self._exchange])):
            exchange.stop()

    @classmethod
    def _on_exit(cls) -> None:
        watch = cls._current
        if watch is None:
            return
        error = getattr(sys, "last_value", None)
        text = ""
        if error is not None:
            text = "".join(traceback.format_exception(type(error), error, error.__traceback__)[-12:])
        # Make no more calls into torch: a call that releases the GIL would crash at the interpreter's exit.
        watch._leaving.set()
        if watch._sampling.acquire(timeout=_LONGEST_LOOK):
            watch._sampling.release()
        watch._leave(FAILED if text else FINISHED, text)
        if error is not None and watch._hub is not None:
            watch._hub.check_now(_LONGEST_LOOK)
        if watch._job is not None and watch.identity is not None and error is None and watch._hello_sent is not None:
            watch._job.forget(watch.identity.local_rank)

    @classmethod
    def _after_fork(cls) -> None:
        """Restart the watch in a forked child if it is a rank of ``ddp_fork``, since a fork has no threads."""
        watch, cls._current = cls._current, None
        cls._start_lock = threading.Lock()
        if watch is None or watch._stopped.is_set():
            return
        if watch._connection is not None:
            watch._connection.close()
        if watch._hub is not None:
            watch._hub.server.close()
        frame: Any = sys._getframe()
        while frame is not None:
            code = frame.f_code
            if code.co_name == "start_processes" and code.co_filename.endswith("torch/multiprocessing/spawn.py"):
                cls.start(watch.timeout, watch.abort)
                return
            frame = frame.f_back
