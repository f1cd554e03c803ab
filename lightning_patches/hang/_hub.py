"""Rank zero's side: hears every rank, decides when to report, brings the reports together."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from lightning_patches.hang import _evidence, _report
from lightning_patches.hang._wire import Connection, Message

_PATIENCE = 3.0
"""Seconds for the ranks to answer a request for a report; they do within milliseconds unless something holds them."""
_LONGEST_PAUSE = 3600.0
GRACE = 0.2
"""Seconds from the order to end until a rank obeys it."""


@dataclass
class Peer:
    """A rank as rank zero knows it.

    Args:
        connection: to it.
        hello: who it is.
        beat: what it told last, and when it did (``heard``).
        answer: its report, while one is collected.
        ended: why it is no longer there; ``None`` while it is.
        outside: what others of its host found out about it.
    """

    connection: Connection
    hello: Message = field(default_factory=dict)
    beat: Message = field(default_factory=dict)
    heard: float = 0.0
    answer: Optional[Message] = None
    ended: Optional[str] = None
    outside: str = ""

    @property
    def alive(self) -> bool:
        return self.ended is None and bool(self.hello)

    def waits(self) -> float:
        return float(self.beat.get("waits", 0.0)) if self.alive else 0.0


class Hub:
    """The thread that listens.

    Args:
        listener: a listening socket.
        key: what ranks of this job know.
        host: name of this host.
        settings: returns the timeout in seconds and whether to abort, as they are now.
        me: how this process is reached when it does not answer, sent to everybody.
        end: ends this process.
    """

    def __init__(
        self,
        listener: socket.socket,
        key: str,
        host: str,
        settings: Callable[[], tuple[float, bool]],
        me: Message,
        end: Callable[[], None],
    ) -> None:
        self._listener, self._key, self._host = listener, key, host
        self._settings, self._me, self._end = settings, me, end
        self._peers: list[Peer] = []
        self._reported_at = 0.0
        """How long ranks had waited when they were reported last; 0 if nothing was reported."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="lightning_patches hang hub", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """In a forked child: this end of what is the parent's."""
        self._listener.close()
        for peer in self._peers:
            peer.connection.close()

    def _run(self) -> None:
        while True:
            try:
                self._serve(_interval(self._settings()[0]))
                self._check()
            except Exception as error:  # a bug in here must not be what a training dies of
                _report.say(f"the hang watcher gave up: {type(error).__name__}: {error}")
                return

    # ---------------------------------------------------------------- listening

    def _serve(self, seconds: float) -> None:
        """Hear what the ranks say, until the time is over."""
        end = time.monotonic() + seconds
        while True:
            for key, _ in self._selector.select(max(0.0, end - time.monotonic())):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._hear(key.data)
            if time.monotonic() >= end:
                return

    def _serve_until(self, done: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            self._serve(0.05)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        peer = Peer(Connection(sock))
        self._peers.append(peer)
        self._selector.register(sock, selectors.EVENT_READ, peer)

    def _hear(self, peer: Peer) -> None:
        descriptor = peer.connection.fileno()
        for message in peer.connection.receive():
            self._take(peer, message)
        if not peer.connection.open:
            self._selector.unregister(descriptor)
            if not peer.hello:
                self._peers.remove(peer)
            elif peer.ended is None:
                peer.ended = "lost"

    def _take(self, peer: Peer, message: Message) -> None:
        kind = message.get("t")
        if kind == "hello":
            if message.get("key") != self._key or not self._welcome(peer, message):
                peer.connection.send({"t": "taken"})
                return
            peer.hello, peer.heard = message, time.monotonic()
            peer.connection.send({"t": "welcome", **self._me})
        elif not peer.hello:
            return
        elif kind == "beat":
            peer.beat, peer.heard = message, time.monotonic()
            peer.connection.send({"t": "pulse"})
        elif kind == "report":
            peer.answer, peer.heard = message, time.monotonic()
        elif kind == "probed":
            for other in self._peers:
                if other.hello.get("pid") == message.get("pid") and other.hello.get("host") == peer.hello["host"]:
                    other.outside = str(message.get("text", "")) or other.outside
        elif kind == "bye":
            peer.ended = str(message.get("error") or "finished")

    def _welcome(self, peer: Peer, hello: Message) -> bool:
        """False for a process that calls itself a rank which another living process is: a child that inherited the
        rank's environment."""
        for other in list(self._peers):
            if other is peer or not _same_rank(other.hello, hello):
                continue
            if other.alive and other.connection.open:
                return False
            self._peers.remove(other)
        return True

    # ---------------------------------------------------------------- deciding

    def _check(self) -> None:
        timeout, abort = self._settings()
        longest = max((peer.waits() for peer in self._peers), default=0.0)
        if longest < timeout:
            if self._reported_at:
                _report.say(f"no rank waits any more. It was for {self._reported_at:.0f} s or longer.")
            self._reported_at = 0.0
            return
        if longest < min(2 * self._reported_at, self._reported_at + _LONGEST_PAUSE):
            return
        self._collect()
        point = max((peer for peer in self._peers if peer.alive), key=Peer.waits, default=None)
        if point is None or point.waits() < timeout:
            return  # over in the meantime
        missing = self._missing(point)
        held_back = abort and any(status.moves for status in missing)
        after = _report.ABORTS if abort and not held_back else _report.HELD_BACK if held_back else _report.WAITS
        here = [peer for peer in self._peers if peer.alive and _same_call(peer, point)]
        gpus = [
            f"{line} (host {peer.hello['host']})"
            for peer in self._peers
            for line in (peer.answer or {}).get("gpus", [])
        ]
        _report.say(
            _report.render(
                _report.Point(str(point.beat["what"]), int(point.beat["number"]), point.waits(), self._world()),
                [_report.Arrival(_name(peer), peer.beat, peer.answer or {}) for peer in here],
                missing,
                gpus,
                after,
            )
        )
        self._reported_at = longest
        if after == _report.ABORTS:
            self._abort(missing)

    def _collect(self) -> None:
        """Ask everybody; look from outside at those who do not answer."""
        hosts: set[str] = set()
        asked = []
        for peer in self._peers:
            peer.answer, peer.outside = None, ""
            if peer.alive:
                host = str(peer.hello["host"])
                peer.connection.send({"t": "report", "gpus": host not in hosts})
                hosts.add(host)
                asked.append(peer)
        self._serve_until(lambda: all(peer.answer or not peer.alive for peer in asked), _PATIENCE)
        elsewhere = []
        for peer in self._peers:
            if peer.answer or peer.ended not in (None, "lost") or not peer.hello:
                continue
            if peer.hello["host"] == self._host:
                peer.outside = look_from_outside(peer.hello, peer.ended is None)
                continue
            neighbours = (p for p in self._peers if p.answer and p.hello["host"] == peer.hello["host"])
            neighbour = next(neighbours, None)
            if neighbour is not None:
                neighbour.connection.send({"t": "probe", "lives": peer.ended is None, **_reach(peer.hello)})
                elsewhere.append(peer)
        self._serve_until(lambda: all(peer.outside for peer in elsewhere), _PATIENCE)

    def _missing(self, point: Peer) -> list[_report.Missing]:
        found = []
        timeout = self._settings()[0]
        known = {peer.hello.get("rank"): peer for peer in self._peers if peer.hello}
        started: dict[int, list[tuple[int, int, int]]] = {}
        ranks: list[Any] = list(range(self._world()))
        if any(rank not in known for rank in ranks):
            for item in _evidence.ranks_by_environment(os.environ.get("MASTER_PORT", "")):
                started.setdefault(item[0], []).append(item)
        for rank in ranks:
            peer = known.get(rank)
            if peer is None:
                processes = started.get(rank, [])
                text = "has not said hello to rank zero"
                if processes:
                    pid, began = processes[0][1:]
                    text += f"; process {pid} of host {self._host} was started for it: "
                    text += _evidence.process_state(pid, began)
                else:
                    text += f", and no process of host {self._host} was started for it (what is not watched on other "
                    text += "hosts can't be seen)"
                moves = any(_evidence.is_at_work(pid) for _, pid, _ in processes)
                text += ", and uses the CPU" if moves else ""
                kill = [(self._host, pid, began) for _, pid, began in processes]
                found.append(_report.Missing(f"rank {rank}", text, moves=moves, kill=kill))
            elif not (peer.alive and _same_call(peer, point)):
                found.append(self._describe(peer, timeout))
        for peer in self._peers:
            if peer.hello and peer.hello.get("rank") is None and not (peer.alive and _same_call(peer, point)):
                found.append(self._describe(peer, timeout))
        return found

    def _describe(self, peer: Peer, timeout: float) -> _report.Missing:
        name, beat = _name(peer), peer.beat
        last = f" Last seen at {beat['place']}." if beat.get("place") else ""
        if peer.ended == "lost":
            outside = peer.outside or "its host can't be asked"
            return _report.Missing(name, f"has ended without a word: {outside}.{last}")
        if peer.ended == "finished":
            return _report.Missing(name, f"has left: its program has ended.{last}")
        if peer.ended == "stopped":
            return _report.Missing(name, f"is not watched any more.{last}")
        if peer.ended is not None:
            return _report.Missing(name, "has ended with an error:", peer.ended)
        if peer.answer is None:
            state, _, stack = peer.outside.partition("\n")
            text = f"does not answer: {state or 'its host can not be asked'}.{last}"
            if stack:
                text += " It is in code that lets no other Python thread run:"
            kill = [(str(peer.hello["host"]), int(peer.hello["pid"]), peer.hello.get("started"))]
            return _report.Missing(name, text, stack, kill=kill)
        moves = int(beat.get("changes", 0)) >= 3
        if beat.get("what"):
            text = f"waits in another call: {_report.call(beat['what'], beat['number'])}, for {beat['waits']:.0f} s."
            moves = False
        elif moves:
            text = "is not there yet, and moves: its stack keeps changing."
        else:
            text = f"is not there; its main thread has not moved for {beat['still']:.0f} s."
        return _report.Missing(name, text, peer.answer.get("stack", ""), peer.answer.get("collective", ""), moves)

    def _world(self) -> int:
        return max((int(peer.hello.get("world", 0)) for peer in self._peers if peer.hello), default=0)

    def _abort(self, missing: list[_report.Missing]) -> None:
        kill = [item for status in missing for item in status.kill]
        for peer in self._peers:
            if peer.alive and peer.hello.get("pid") != os.getpid():
                peer.connection.send({"t": "abort", "kill": kill})
        # All at the same moment: a rank that sees others go first ends with an error of its own.
        time.sleep(GRACE)
        end_others(self._host, kill)
        self._end()


def look_from_outside(reach: Message, lives: bool) -> str:
    """What this host knows of one of its processes: one line on its state, below it the stack if it writes one."""
    pid, started = int(reach["pid"]), reach.get("started")
    state = _evidence.process_state(pid, started)
    if not lives:
        return state
    stack = _evidence.stack_from_outside(pid, started, int(reach.get("signal", 0)), int(reach.get("file", -1)))
    return f"{state}\n{stack}"


def end_others(host: str, processes: list[Any]) -> None:
    """End those of the processes that run on this host."""
    for where, pid, started in processes:
        if where == host and pid != os.getpid():
            _evidence.kill(int(pid), started)


def _interval(timeout: float) -> float:
    return min(max(timeout / 15, 0.1), 5.0)


def _reach(hello: Message) -> Message:
    return {name: hello.get(name) for name in ("pid", "started", "signal", "file")}


def _same_rank(one: Message, other: Message) -> bool:
    if one.get("rank") is None or other.get("rank") is None:
        return bool(one) and (one.get("node"), one.get("local_rank")) == (other.get("node"), other.get("local_rank"))
    return bool(one["rank"] == other["rank"])


def _same_call(peer: Peer, point: Peer) -> bool:
    names = ("what", "number")
    return [peer.beat.get(name) for name in names] == [point.beat.get(name) for name in names]


def _name(peer: Peer) -> str:
    hello = peer.hello
    rank = hello.get("rank")
    who = f"rank {rank}" if rank is not None else f"local rank {hello.get('local_rank')} of node {hello.get('node')}"
    return f"{who} (host {hello.get('host')}, pid {hello.get('pid')})"
