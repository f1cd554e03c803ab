"""Every rank's side: looks at itself, tells rank zero, answers when asked."""

from __future__ import annotations

import atexit
import dataclasses
import os
import random
import socket
import sys
import threading
import time
import traceback
from typing import Any, ClassVar, Optional

from lightning_patches import _runtime
from lightning_patches.hang import _evidence, _hub, _identity, _report, _stacks, _wire
from lightning_patches.hang._identity import Identity
from lightning_patches.hang._report import STATUS

__all__ = ["STATUS", "Watch"]

_ATTEMPTS_AS_CHILD = 20
"""A process of :mod:`multiprocessing` that is no rank by then is none (a DataLoader worker), and is let alone."""
_ERRORS = 5
"""In a row. Fewer may come of a module that the main thread is importing."""


class Watch:
    """The watch over one rank. Made by :func:`lightning_patches.hang.watch`.

    Args:
        timeout: in seconds.
        abort: end all ranks after the report.
    """

    _current: ClassVar[Optional[Watch]] = None
    _making: ClassVar[threading.Lock] = threading.Lock()
    _registered: ClassVar[bool] = False

    def __init__(self, timeout: float, abort: bool) -> None:
        self.timeout, self.abort = timeout, abort
        self._host = socket.gethostname()
        self._stopped = threading.Event()
        self._identity: Optional[Identity] = None
        self._hub: Optional[_hub.Hub] = None
        self._connection: Optional[_wire.Connection] = None
        self._said: Optional[Identity] = None
        self._zero: _wire.Message = {}
        """How rank zero is reached when it does not answer."""
        self._heard = self._next_try = time.monotonic()
        self._complained = 0.0
        self._mark: Optional[socket.socket] = None
        self._sampler = _stacks.Sampler(timeout)
        dump = _evidence.Dump()
        pid = os.getpid()
        self._me: _wire.Message = {
            "host": self._host,
            "pid": pid,
            "started": _evidence.start_time(pid),
            "signal": dump.signal,
            "file": dump.file,
        }
        self._thread = threading.Thread(target=self._run, name="lightning_patches hang watch", daemon=True)

    @classmethod
    def start(cls, timeout: float, abort: bool) -> Watch:
        """The one watch of this process, with these settings."""
        with cls._making:
            current = cls._current
            if current is not None and not current._stopped.is_set():
                current.timeout = current._sampler.timeout = timeout
                current.abort = abort
                return current
            watch = cls._current = cls(timeout, abort)
            if not cls._registered:
                cls._registered = True
                atexit.register(cls._on_exit)
                os.register_at_fork(after_in_child=cls._after_fork)
            util = sys.modules.get("multiprocessing.util")
            if util is not None and _runtime.is_child():  # where nothing runs what atexit knows
                util.Finalize(None, cls._on_exit, exitpriority=0)
        watch._thread.start()
        return watch

    def stop(self) -> None:
        """Watch no longer. The other ranks are told."""
        self._leave("stopped")

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        attempts = errors = 0
        while not self._stopped.is_set():
            try:
                view = self._sampler.look()
                self._identity = _identity.find(_stacks.main_frames()) or self._identity
                if self._identity is None and _runtime.is_child():
                    attempts += 1
                    if attempts > _ATTEMPTS_AS_CHILD:
                        return
                if self._identity is not None:
                    self._tell(self._identity, view)
                    self._check_alone(self._identity, view)
                self._pause()
                errors = 0
            except Exception as error:  # a bug in here must not be what a training dies of
                errors += 1
                if errors == _ERRORS:
                    _report.say(f"the hang watcher gave up in this rank: {type(error).__name__}: {error}")
                    return
                self._stopped.wait(0.2)

    def _pause(self) -> None:
        interval = min(max(self.timeout / 15, 0.1), 5.0) * random.uniform(0.8, 1.2)
        end = time.monotonic() + interval
        while not self._stopped.is_set():
            rest = end - time.monotonic()
            connection = self._connection
            if rest <= 0:
                return
            if connection is None or not connection.open:
                self._stopped.wait(rest)
            elif connection.wait(rest):
                for message in connection.receive():
                    self._obey(connection, message)

    def _tell(self, identity: Identity, view: _stacks.View) -> None:
        now = time.monotonic()
        if self._connection is None or not self._connection.open:
            if now < self._next_try:
                return
            self._connection = self._said = None
            self._next_try = now + min(self.timeout / 5, 10.0)
            if not self._find_hub(identity):
                return
        connection = self._connection
        if connection is None or self._stopped.is_set():
            return
        if self._said != identity:
            connection.send(self._hello(identity))
            self._said = identity
        connection.send({"t": "beat", **dataclasses.asdict(view)})

    def _find_hub(self, identity: Identity) -> bool:
        """Connect to rank zero; in rank zero, listen first, unless another process of this rank does already."""
        if self._greet(identity):
            return True
        if identity.rank == 0 and self._hub is None and not self._stopped.is_set():
            listener = _wire.listen("127.0.0.1" if identity.on_loopback else "", identity.ports)
            if listener is None:
                _report.say(f"no report on hangs can be given: ports {identity.ports} are all in use.")
                self._stopped.set()
                return False
            self._hub = _hub.Hub(
                listener, identity.key, self._host, lambda: (self.timeout, self.abort), self._me, _report.leave
            )
            return self._greet(identity)
        return False

    def _greet(self, identity: Identity) -> bool:
        address = "127.0.0.1" if identity.rank == 0 else identity.address
        for port in identity.ports:
            connection = _wire.connect(address, port, patience=1.0)
            if connection is None:
                continue
            connection.send(self._hello(identity))
            end = time.monotonic() + 2.0
            while connection.open and time.monotonic() < end:
                connection.wait(0.2)
                messages = connection.receive()
                if any(message.get("t") == "taken" for message in messages):
                    connection.close()
                    self._stopped.set()  # this is a process that a rank has started
                    return False
                if any(message.get("t") == "welcome" for message in messages):
                    self._zero = next(message for message in messages if message.get("t") == "welcome")
                    self._connection, self._said, self._heard = connection, identity, time.monotonic()
                    return True
            connection.close()
        return False

    def _hello(self, identity: Identity) -> _wire.Message:
        return {
            "t": "hello",
            "key": identity.key,
            "rank": identity.rank,
            "local_rank": identity.local_rank,
            "node": identity.node,
            "world": identity.world_size,
            **self._me,
        }

    def _obey(self, connection: _wire.Connection, message: _wire.Message) -> None:
        self._heard = time.monotonic()
        kind = message.get("t")
        if kind == "report":
            # What it says now is what the report is about, not what it said a while ago.
            connection.send({"t": "beat", **dataclasses.asdict(self._sampler.look())})
            answer: dict[str, Any] = {"t": "report", "stack": _stacks.describe()}
            answer["collective"] = _evidence.last_collective()
            answer["gpus"] = _evidence.gpus() if message.get("gpus") else []
            connection.send(answer)
        elif kind == "probe":
            text = _hub.look_from_outside(message, bool(message.get("lives")))
            connection.send({"t": "probed", "pid": message["pid"], "text": text})
        elif kind == "abort" and self.abort:
            time.sleep(_hub.GRACE)
            _hub.end_others(self._host, message.get("kill", []))
            _report.leave()

    # ---------------------------------------------------------------- without rank zero

    def _check_alone(self, identity: Identity, view: _stacks.View) -> None:
        """Report from here, if this rank waits and rank zero's watch can't be reached or is silent."""
        now = time.monotonic()
        if view.waits < 1.5 * self.timeout:  # rank zero comes first
            self._complained = 0.0
            return
        if self._connection is not None and self._connection.open and now - self._heard < max(0.7 * self.timeout, 3.0):
            return
        if view.waits < 2 * self._complained:
            return
        self._complained = view.waits
        mark = self._mark = self._mark or _wire.only_one_of_this_host(f"lightning_patches-hang-{identity.key}")
        if mark is not None:
            _report.say(self._alone(identity, view))
        if self.abort:
            if self._zero and identity.rank != 0:
                _hub.end_others(self._host, [(self._zero["host"], self._zero["pid"], self._zero["started"])])
            _report.leave()

    def _alone(self, identity: Identity, view: _stacks.View) -> str:
        name = f"rank {identity.rank}" if identity.rank is not None else f"local rank {identity.local_rank}"
        lines = [
            f"{name} (host {self._host}, pid {os.getpid()}) has waited {view.waits:.0f} s, in "
            f"{_report.call(view.what, view.number)}, and the watch of rank 0 can't be reached, which would know more."
        ]
        if self._zero:
            where = f"rank 0 (host {self._zero['host']}, pid {self._zero['pid']})"
            if self._zero["host"] == self._host:
                open_ = self._connection is not None and self._connection.open
                state, _, stack = _hub.look_from_outside(self._zero, open_).partition("\n")
                lines.append(f"  {where}: {state}.")
                lines += _report._indented(stack, 60) if stack else []
            else:
                lines.append(f"  {where} was there before.")
        else:
            lines.append(
                f"  It was never there at {identity.address}, ports {identity.ports}: rank 0 has not begun, is not "
                f"watched, or a firewall is between ({_identity.PORT_VARIABLE} sets the port)."
            )
        lines += [f"  stack of {name}:", *_report._indented(_stacks.describe(), 60)]
        lines.append(f"  Ranks are ended now, with status {STATUS}." if self.abort else "  The rank goes on waiting.")
        return _report._printable("\n".join(lines))

    # ---------------------------------------------------------------- ends and forks

    def _leave(self, why: str) -> None:
        self._stopped.set()
        connection = self._connection
        if connection is not None and connection.open:
            connection.send({"t": "bye", "error": why})
            if self._hub is None:
                connection.close()

    @classmethod
    def _on_exit(cls) -> None:
        watch = cls._current
        if watch is None:
            return
        error = getattr(sys, "last_value", None)
        text = ""
        if error is not None:
            text = "".join(traceback.format_exception(type(error), error, error.__traceback__)[-12:])[-6000:]
        watch._leave(text or "finished")

    @classmethod
    def _after_fork(cls) -> None:
        """The child has none of the threads. It is watched anew if it is a rank of ``ddp_fork``."""
        watch, cls._current = cls._current, None
        cls._making = threading.Lock()
        if watch is None or watch._stopped.is_set():
            return
        if watch._connection is not None:
            watch._connection.close()
        if watch._hub is not None:
            watch._hub.close()
        frame: Any = sys._getframe()
        while frame is not None:
            code = frame.f_code
            if code.co_name == "start_processes" and code.co_filename.endswith("torch/multiprocessing/spawn.py"):
                cls.start(watch.timeout, watch.abort)
                return
            frame = frame.f_back
