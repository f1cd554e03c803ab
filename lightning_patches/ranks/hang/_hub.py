"""Rank zero's side: hears every rank, decides when to report, brings the reports together.

It listens on a socket file for the ranks of its own node, and, once there is a secret that the other nodes' ranks know,
on a port for those. Whoever does not behave loses the connection.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Callable, Optional, Protocol

from lightning_patches.ranks import _node, _processes
from lightning_patches.ranks.hang import _messages, _report, _settings, _wire
from lightning_patches.ranks.hang._identity import Identity
from lightning_patches.ranks.hang._messages import FAILED, FINISHED, LONGEST_STACK, STOPPED, Message
from lightning_patches.ranks.hang._registry import THREADS, Job, Outside
from lightning_patches.ranks.hang._report import Call, Next, Report, State
from lightning_patches.ranks.hang._wire import Connection

_PATIENCE = 3.0
"""Seconds for the ranks to answer a request for a report; they do within milliseconds unless something holds them."""
_PATIENCE_OUTSIDE = 6.0
_PATIENCE_AFTER_DEATH = 10.0
"""Seconds that ranks get to end by themselves when one has died, and that others wait for one that is gone."""
_LONGEST_PAUSE = 3600.0
_LONGEST_START = 60.0
"""Seconds until it is said which ranks are not watched, once there is a process group."""
_MOST_STRANGERS = 32
_MOST_VIEWERS = 2
_ERRORS = 5
"""In a row."""
_LONGEST_ABSENCE = 30.0
GRACE = 0.2
"""Seconds from the order to end until a rank obeys it."""
LOST = "lost"


@dataclass(frozen=True)
class Ending:
    """How a rank has ended.

    Args:
        kind: what it has said itself, or ``LOST`` if nothing.
        detail: the error that it ended with.
    """

    kind: str
    detail: str = ""

    @property
    def cause(self) -> str:
        """The error in one line."""
        return self.detail.rstrip().rpartition("\n")[2]


class Owner(Protocol):
    """The watch of the process that the hub is in."""

    timeout: float
    abort: bool
    identity: Optional[Identity]

    def end(self) -> None:
        """End this process, and what it has started."""


@dataclass
class Peer:
    """A process that has connected; a rank once it has said hello.

    Args:
        connection: to it.
        descriptor: of its socket.
        address: from which it has come.
        hello: who it is.
        beat: what it told last.
        heard_at: when that was.
        answer: its report, while one is collected.
        finished: its program has come to its end, and it may still hang in what runs then.
        ending: how it has ended; ``None`` while it is there.
        ended_at: when that was.
        outside: what its node found out about it.
    """

    connection: Connection
    descriptor: int
    address: str = ""
    hello: Message = field(default_factory=dict)
    beat: Message = field(default_factory=dict)
    heard_at: float = 0.0
    answer: Optional[Message] = None
    finished: bool = False
    ending: Optional[Ending] = None
    ended_at: float = 0.0
    outside: Optional[Outside] = None

    @property
    def alive(self) -> bool:
        return self.ending is None and bool(self.hello)

    @property
    def waits(self) -> float:
        return float(self.beat["waits"]) if self.alive and self.beat else 0.0

    @property
    def stands_still(self) -> float:
        return max(self.waits, float(self.beat["idle"])) if self.beat else 0.0

    def end(self, kind: str, detail: str = "") -> None:
        self.ending, self.ended_at = Ending(kind, detail), time.monotonic()

    @property
    def is_lost(self) -> bool:
        return self.ending is not None and self.ending.kind == LOST

    @property
    def has_gone(self) -> bool:
        """Whether its process has hung up and not come back, as one that lives does within ten seconds."""
        return self.connection.hung_up and time.monotonic() - self.ended_at > _LONGEST_ABSENCE

    @property
    def key(self) -> tuple[str, int]:
        return str(self.hello["node_id"]), int(self.hello["local_rank"])

    @property
    def name(self) -> str:
        rank = self.hello["rank"]
        return f"rank {rank}" if rank is not None else f"local rank {self.key[1]} of node {self.hello['node']}"

    @property
    def where(self) -> str:
        return f"host {self.hello['host']}, pid {self.hello['pid']}"

    @property
    def call(self) -> Call:
        beat = self.beat
        pending = beat["pending"]
        if pending:
            return Call(beat["what"], pending["number"], pending["group"])
        return Call(beat["what"], max(beat["numbers"].values(), default=-1))

    def is_in_the_call_of(self, point: Peer) -> bool:
        """Whether this rank waits where ``point`` does."""
        if not self.alive or not self.waits:
            return False
        mine, its = self.beat["pending"], point.beat["pending"]
        if mine and its:
            return bool([mine[n] for n in ("group", "number", "name")] == [its[n] for n in ("group", "number", "name")])
        numbers, others = self.beat["numbers"], point.beat["numbers"]
        same = all(numbers[group] == others[group] for group in numbers.keys() & others.keys())
        return bool(self.beat["what"] == point.beat["what"] and same and bool(numbers) == bool(others))

    def has_no_part_in(self, point: Peer) -> bool:
        """Whether this rank is not in the process group that ``point`` waits in."""
        pending = point.beat["pending"]
        return bool(pending and self.beat and self.beat["numbers"] and pending["group"] not in self.beat["numbers"])


class Hub:
    """The thread that listens.

    Args:
        job: this node's files of it.
        owner: rank zero's watch.
    """

    def __init__(self, job: Job, owner: Owner) -> None:
        self._job, self._owner = job, owner
        self._ranks: dict[tuple[str, int], Peer] = {}
        self._strangers: list[Peer] = []
        self._viewers: list[Peer] = []
        self._reported_at = 0.0
        """How long ranks had waited when they were reported last; 0 if nothing was reported."""
        self._reports = 0
        self._reported: list[tuple[str, ...]] = []
        """What was reported last."""
        self._told: set[tuple[str, int]] = set()
        self._began = time.monotonic()
        self._counted = 0
        self._hurries, self._settled = threading.Event(), threading.Event()
        self._selector = selectors.DefaultSelector()
        self._secrets: dict[socket.socket, bytes] = {}
        self._listeners = [_wire.listen_here(job.socket)]
        self._add_listener(self._listeners[0], job.secret())
        job.sweep()
        self._thread = threading.Thread(target=self._run, name=f"{THREADS} hub", daemon=True)
        self._thread.start()

    def listen_on_port(self, ports: list[int], secret: bytes) -> bool:
        """Listen on a port, too; that of a job on one node is closed to other machines. False if none is free."""
        listener = _wire.listen(ports, everywhere=not self._identity.one_node)
        if listener is None:
            return False
        self._listeners.append(listener)
        self._add_listener(listener, secret)
        return True

    @property
    def listens_on_port(self) -> bool:
        return len(self._listeners) > 1

    @property
    def is_complete(self) -> bool:
        """Whether every rank has said hello."""
        return len(self._ranks) >= self._world

    def close(self) -> None:
        """In a forked child: close this end of what is the parent's."""
        for listener in self._listeners:
            listener.close()
        for peer in (*self._ranks.values(), *self._strangers, *self._viewers):
            peer.connection.close()

    def settle(self, seconds: float) -> None:
        """Look once more before rank zero ends with an error: a rank may have died and taken it along."""
        self._settled.clear()
        self._hurries.set()
        self._settled.wait(seconds)

    def _add_listener(self, listener: socket.socket, secret: bytes) -> None:
        self._secrets[listener] = secret
        self._selector.register(listener, selectors.EVENT_READ)

    def _run(self) -> None:
        errors = 0
        while errors < _ERRORS:
            try:
                self._serve(_settings.pause(self._owner.timeout))
                hurries = self._hurries.is_set()
                self._check(hurries)
                self._show()
                if hurries:
                    self._hurries.clear()
                    self._settled.set()
                errors = 0
            except Exception as error:  # a bug in here must not be what a training dies of
                errors += 1
                said = f"{type(error).__name__}: {error}"
                time.sleep(0.2)
        _report.say(
            f"the hang watch of this job gave up in {self._identity.name}, which hears all ranks: a hang is no "
            f"longer reported. Please report this error: {said}"
        )

    # ---------------------------------------------------------------- listening

    def _serve(self, seconds: float) -> None:
        """Hear what the ranks say, until the time is over."""
        end = time.monotonic() + seconds
        while True:
            for key, _ in self._selector.select(min(1.0, max(0.0, end - time.monotonic()))):
                if isinstance(key.fileobj, socket.socket):
                    self._accept(key.fileobj)
                else:
                    self._hear(key.data)
            now = time.monotonic()
            for peer in list(self._strangers):
                if now - peer.connection.since > _wire.HELLO_DEADLINE:
                    peer.connection.close()
            self._drop_closed()
            if now >= end or (seconds > 1.0 and self._viewers) or self._hurries.is_set():
                return

    def _serve_until(self, done: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            self._serve(0.05)

    def _accept(self, listener: socket.socket) -> None:
        """Let somebody in. No more than a few at a time who have not proved who they are."""
        try:
            sock, address = listener.accept()
        except OSError:  # too many open files in this process, for instance
            time.sleep(0.05)
            return
        if len(self._strangers) >= _MOST_STRANGERS:
            self._show_out_a_stranger()
        self._drop_closed()
        peer = Peer(Connection(sock, self._secrets[listener], as_hub=True), sock.fileno())
        peer.address = str(address[0]) if address else ""
        if peer.connection.open:
            self._strangers.append(peer)
            self._selector.register(peer.descriptor, selectors.EVENT_READ, peer)

    def _show_out_a_stranger(self) -> None:
        """The oldest from the address that has the most of them: whoever comes from elsewhere keeps his place."""
        unknown = [peer for peer in self._strangers if not peer.connection.known] or self._strangers
        many = Counter(peer.address for peer in unknown)
        min(unknown, key=lambda peer: (-many[peer.address], peer.connection.since)).connection.close()

    def _hear(self, peer: Peer) -> None:
        for message in peer.connection.receive():
            if peer.connection.open:
                self._take(peer, message)

    def _drop_closed(self) -> None:
        everybody = (*self._ranks.values(), *self._strangers, *self._viewers)
        for peer in [peer for peer in everybody if not peer.connection.open]:
            if peer.descriptor >= 0:
                self._selector.unregister(peer.descriptor)
                peer.descriptor = -1
            if peer in self._strangers:
                self._strangers.remove(peer)
            elif peer in self._viewers:
                self._viewers.remove(peer)
            elif peer.ending is None:
                peer.end(FINISHED if peer.finished else LOST)

    def _take(self, peer: Peer, message: Message) -> None:
        kind = message["t"]
        if kind == "hello":
            self._welcome(peer, message)
        elif kind == "show" and peer in self._strangers and len(self._viewers) < _MOST_VIEWERS:
            self._strangers.remove(peer)
            self._viewers.append(peer)
        elif not peer.hello:
            peer.connection.close()
        elif kind == "beat":
            peer.beat, peer.heard_at = message, time.monotonic()
            peer.connection.send({"t": "pulse"})
        elif kind == "report":
            peer.answer = message
        elif kind == "probed":
            other = self._ranks.get((peer.key[0], message["local_rank"]))
            if other is not None:
                other.outside = Outside(**{field.name: message[field.name] for field in fields(Outside)})
        elif kind == "bye" and message["kind"] == FINISHED:
            peer.finished = True
        elif kind == "bye":
            peer.end(message["kind"], message["detail"])

    def _welcome(self, peer: Peer, hello: Message) -> None:
        """Take somebody for the rank that it says to be, unless another living process is that."""
        if peer.hello and (hello["node_id"], hello["local_rank"]) != peer.key:
            peer.connection.close()
            return
        key, rank = (hello["node_id"], hello["local_rank"]), hello["rank"]
        same = [
            other
            for other in self._ranks.values()
            if other is not peer and (other.key == key or (rank is not None and other.hello["rank"] == rank))
        ]
        free = not any(other.alive for other in same)
        for other in same if free else []:
            del self._ranks[other.key]
        within = hello["local_rank"] < self._world and (rank is None or rank < self._world)
        if not free or not within or (key not in self._ranks and len(self._ranks) >= self._world):
            peer.connection.send({"t": "taken"})
            peer.connection.close()
            return
        if peer in self._strangers:
            self._strangers.remove(peer)
        peer.hello = hello
        self._ranks[key] = peer
        peer.connection.send({"t": "welcome", "host": socket.gethostname(), "pid": os.getpid()})

    # ---------------------------------------------------------------- deciding

    @property
    def _world(self) -> int:
        return self._identity.world_size

    @property
    def _identity(self) -> Identity:
        identity = self._owner.identity
        assert identity is not None  # a rank that is not known has no hub
        return identity

    def _check(self, hurries: bool = False) -> None:
        self._count()
        timeout, abort = self._owner.timeout, self._owner.abort
        self._look_at_the_lost()
        alive = [peer for peer in self._ranks.values() if peer.alive]
        died = [peer for peer in self._ranks.values() if peer.outside is not None and peer.outside.crashed]
        # Rank zero ends with an error: what others have ended with may be why.
        causes = [peer for peer in self._ranks.values() if hurries and peer.outside is not None and peer.outside.failed]
        new = [peer for peer in died or causes if peer.key not in self._told]
        over = [peer for peer in died if time.monotonic() - peer.ended_at > min(timeout, _PATIENCE_AFTER_DEATH)]
        waits = max((peer.waits for peer in alive), default=0.0)
        seconds = self._standstill(alive, timeout)
        mismatch = not seconds and not self._reported_at and self._mismatch(alive)
        if new or mismatch or (seconds and seconds >= self._next_report(timeout)):
            self._report(waits if mismatch else seconds, at_once=mismatch or bool(new and not died))
            self._told |= {peer.key for peer in new}
        elif not seconds and waits < self._reported_at:
            _report.say_in_short(f"no rank waits any more. The wait lasted {self._reported_at:.0f} s or longer.")
            self._reported_at = self._reports = 0
            self._reported = []
        if over and abort:
            _report.say_in_short(f"{over[0].name} has died: all ranks are ended now, with status {_report.STATUS}.")
            self._collect()
            self._abort()

    def _standstill(self, alive: list[Peer], timeout: float) -> float:
        """For how long ranks have waited for each other, or none has moved, if that is too long; else 0."""
        waits = [peer.waits for peer in alive]
        # One that has fallen silent may have waited for a moment when it was heard last: that is not to count for ever.
        silent = time.monotonic() - max(_PATIENCE, 3 * _settings.pause(timeout))
        all_wait = len(alive) == self._world and all(waits) and all(peer.heard_at > silent for peer in alive)
        longest = min(waits) if all_wait else max(waits, default=0.0)  # since the last of them has come
        if longest >= self._patience(timeout):
            return longest
        if not alive or len(self._ranks) < self._world:
            return 0.0
        still = min(peer.stands_still for peer in alive)
        return still if still >= timeout else 0.0

    def _next_report(self, timeout: float) -> float:
        last = self._reported_at
        return max(timeout, min(2 * last, last + _LONGEST_PAUSE)) if last else 0.0

    def _patience(self, timeout: float) -> float:
        """How long ranks may wait for each other: not for long if one of them is gone."""
        gone = any(
            (peer.ending is not None and peer.ending.kind == FAILED) or (peer.outside is not None and peer.outside.gone)
            for peer in self._ranks.values()
        )
        return min(timeout, _PATIENCE_AFTER_DEATH) if gone else timeout

    def _mismatch(self, alive: list[Peer]) -> bool:
        """Whether two ranks wait in the same collective of the same group, and do not mean the same one."""
        seen: dict[tuple[str, int], tuple[str, str]] = {}
        for peer in alive:
            pending = peer.beat.get("pending")
            if pending and peer.waits >= _PATIENCE:
                sizes = pending["sizes"] if pending["name"] in ("all_reduce", "allreduce", "broadcast") else ""
                what = (pending["name"], sizes)
                if seen.setdefault((pending["group"], pending["number"]), what) != what:
                    return True
        return False

    def _count(self) -> None:
        """Say how many ranks are watched: when all are, and before that if it takes too long."""
        world = self._world
        if self._counted == world or (self._counted and not self.is_complete):
            return
        waited = time.monotonic() - self._began
        zero = next((peer for peer in self._ranks.values() if peer.hello["rank"] == 0), None)
        has_group = zero is not None and bool(zero.beat.get("numbers"))
        if len(self._ranks) < world and (not has_group or waited < min(self._owner.timeout, _LONGEST_START)):
            return
        self._counted = len(self._ranks)
        known = {peer.hello["rank"] for peer in self._ranks.values()}
        text = f"{len(self._ranks)} of {world} {_settings.WATCHED}."
        if len(self._ranks) < world:
            absent = [rank for rank in range(world) if rank not in known][:8]
            text += f" Not rank {', '.join(map(str, absent))}: not started with the same LIGHTNING_PATCHES_HANG_TIMEOUT"
            if self._identity.one_node:
                text += ", or in a container of its own"
            else:
                text += (
                    ", or they can't reach this node: set LIGHTNING_PATCHES_HANG_SECRET to the same 16 characters or "
                    "more on all nodes, and LIGHTNING_PATCHES_HANG_PORT to a port that no firewall blocks"
                )
            text += "."
        _report.say_in_short(text)

    def _look_at_the_lost(self) -> None:
        """Find out at once how a rank has ended that is gone without a word: soon nobody knows any more.

        What it has started may hold on to its connection, so those of this node that are silent are looked for.
        """
        late = time.monotonic() - 2 * _settings.pause(self._owner.timeout)
        for peer in list(self._ranks.values()):
            if peer.alive and peer.heard_at < late and peer.key[0] == _node.node_id():
                record = self._job.record(peer.key[1])
                if record is not None and record.gone:
                    peer.connection.close()
                    peer.end(FINISHED if peer.finished else LOST)
            if peer.is_lost and peer.outside is None:
                peer.outside = _UNASKED
                self._look_at([peer])

    # ---------------------------------------------------------------- reporting

    def _report(self, seconds: float, at_once: bool) -> None:
        timeout, abort = self._owner.timeout, self._owner.abort
        gpus = self._collect(children=True)
        alive = [peer for peer in self._ranks.values() if peer.alive]
        point = self._point()
        died = any(peer.outside is not None and peer.outside.crashed for peer in self._ranks.values())
        if not died and not at_once and not self._standstill(alive, timeout):
            return  # over in the meantime
        report = Report(self._states(point), point.call if point is not None else None, seconds, gpus)
        works = [state for state in report.missing if state.works]
        unseen = [state for state in report.missing if state.unseen]
        # Where nobody keeps the others waiting, there is nobody to blame: it takes a second report.
        may_end = (
            not works and not unseen and not at_once and (bool(report.call and report.missing) or self._reports > 0)
        )
        ends = abort and bool(seconds) and may_end
        if ends:
            report.after = Next(_report.ENDS_NOW)
        elif abort and died:
            report.after = Next(_report.ENDS_SOON, min(timeout, _PATIENCE_AFTER_DEATH))
        elif abort and works:
            report.after = Next(_report.SPARES, who=works[0].name)
        elif abort and unseen and seconds:
            report.after = Next(_report.CANNOT_SEE, who=unseen[0].name)
        elif abort and seconds and not at_once and not died:
            report.after = Next(_report.ENDS_LATER, 2 * seconds)
        elif seconds:
            report.after = Next(_report.GOES_ON, 2 * seconds)
        _report.tell(report, again=report.situation == self._reported)
        self._reported_at, self._reports, self._reported = seconds, self._reports + 1, report.situation
        if ends:
            self._abort()

    def _show(self) -> None:
        """Tell whoever has asked for it what every rank is doing."""
        if not self._viewers:
            return
        gpus = self._collect()
        point = self._point()
        report = Report(self._states(point), point.call if point else None, point.waits if point else 0.0, gpus)
        program = _messages.printable(" ".join([os.path.basename(sys.executable or "python"), *sys.argv]))
        job = {"program": program, "directory": os.getcwd(), "pid": os.getpid(), "session": os.getsid(0)}
        head = f"Job {job['pid']}, `{_report.cut(program)}` in {_messages.printable(os.getcwd())}:"
        said = json.dumps({**report.as_dict(), "job": job, "text": f"{head}\n{report.text()}"})
        parts = [said[i : i + LONGEST_STACK] for i in range(0, len(said), LONGEST_STACK)]
        for viewer in list(self._viewers):
            for number, part in enumerate(parts, 1):
                viewer.connection.send({"t": "shown", "part": part, "last": number == len(parts)})
            viewer.connection.close()
        self._drop_closed()

    def _point(self) -> Optional[Peer]:
        """The rank that has waited longest for others; ``None`` if none waits."""
        waiting = [peer for peer in self._ranks.values() if peer.alive and peer.waits]
        return max(waiting, key=lambda peer: peer.waits, default=None)

    def _collect(self, children: bool = False) -> list[str]:
        """Ask everybody; look from outside at those who do not answer. Returns a line for each GPU.

        Args:
            children: ask those who do not wait for others about the processes that they have started, too.
        """
        nodes: set[str] = set()
        asked = []
        for peer in self._ranks.values():
            peer.answer = None
            if peer.alive:
                peer.outside = None
                asks = {"gpus": peer.key[0] not in nodes, "children": children and not peer.waits}
                peer.connection.send({"t": "report", **asks})
                nodes.add(peer.key[0])
                asked.append(peer)
        self._serve_until(lambda: all(peer.answer or not peer.alive for peer in asked), _PATIENCE)
        self._look_at([peer for peer in asked if not peer.answer])
        return [
            f"{line} (host {peer.hello['host']})"
            for peer in self._ranks.values()
            for line in (peer.answer or {}).get("gpus", [])
        ]

    def _look_at(self, silent: list[Peer]) -> None:
        """Have ranks looked at by others of their node."""
        elsewhere = []
        for peer in silent:
            node, local_rank = peer.key
            if node == _node.node_id():
                peer.outside = self._job.look(local_rank, peer.ending is None)
                continue
            neighbour = next((p for p in self._ranks.values() if p.alive and p is not peer and p.key[0] == node), None)
            if neighbour is not None:
                neighbour.connection.send({"t": "probe", "local_rank": local_rank, "lives": peer.ending is None})
                elsewhere.append((peer, peer.outside))
        self._serve_until(lambda: all(peer.outside is not before for peer, before in elsewhere), _PATIENCE_OUTSIDE)

    def _states(self, point: Optional[Peer]) -> list[State]:
        known = {peer.hello["rank"]: peer for peer in self._ranks.values()}
        ranks = range(self._world)
        absent = [rank for rank in ranks if rank not in known]
        unnamed = [peer for peer in self._ranks.values() if peer.hello["rank"] is None]
        states = [self._state(known[rank], point) for rank in ranks if rank in known]
        states += [self._state(peer, point) for peer in unnamed]
        states += self._absent(absent[: len(absent) - len(unnamed)]) if absent else []
        return states

    def _absent(self, ranks: list[int]) -> list[State]:
        """Ranks that have not said hello."""
        started: dict[int, tuple[int, int]] = {}
        for rank, pid, began in _processes.ranks_by_environment(os.environ.get("MASTER_PORT", "")):
            started.setdefault(rank, (pid, began))
        states = []
        host, sees_all = socket.gethostname(), self._identity.sees_all
        for rank in ranks:
            if rank in started:
                pid, began = started[rank]
                found = _processes.works(pid)
                works = bool(found)
                text = f"has not said hello to rank zero: {_processes.condition(pid, began)}"
                text += ", and works." if works else "."
                where = f"host {host}, pid {pid}"
                kind = _report.WORKS if works else _report.UNWATCHED
                state = State(f"rank {rank}", rank, where, kind, text=text, place="start-up", works=works)
                state.unseen = found is None
                states.append(state)
            elif any(peer.beat and peer.beat["numbers"] for peer in self._ranks.values()):
                text = "is not watched: it is in the process group, and has not said hello to rank zero."
                states.append(State(f"rank {rank}", rank, "", _report.UNWATCHED, text=text, unseen=True))
            else:
                text = f"has not said hello to rank zero, and no process of host {host} was started for it"
                text += "." if sees_all else " (what is not watched on other hosts or in containers can't be seen)."
                kind = _report.ABSENT if sees_all else _report.UNWATCHED
                states.append(State(f"rank {rank}", rank, "", kind, text=text, unseen=not sees_all))
        return states

    def _state(self, peer: Peer, point: Optional[Peer]) -> State:
        """What is said of a rank that has been here."""
        beat, answer = peer.beat or _NO_BEAT, peer.answer or {}
        state = State(peer.name, peer.hello["rank"], peer.where, _report.STILL, place=beat["place"])
        state.detail, state.collective = answer.get("stack", ""), answer.get("collective", "")
        state.frames, outside = answer.get("frames", []), peer.outside or _UNASKED
        state.children, state.recorder = answer.get("children", []), answer.get("recorder", [])
        last = f" Last seen at {state.place}." if state.place else ""
        if peer.is_lost:
            state.cause = outside.cause
            died = _report.OUT_OF_MEMORY if outside.for_memory else _report.DIED
            state.kind, state.works = died if outside.gone else _report.SILENT, outside.works
            state.unseen = (outside.unclear or not outside.seen) and not peer.has_gone
            state.text = f"{'has ended' if outside.gone else 'was lost'} without a word: {outside.condition}.{last}"
        elif peer.ending is not None and peer.ending.kind == FINISHED:
            state.kind, state.text = _report.LEFT, f"has left: its program has ended.{last}"
        elif peer.ending is not None and peer.ending.kind == STOPPED:
            state.kind, state.text, state.unseen = _report.UNWATCHED, f"is not watched any more.{last}", True
        elif peer.ending is not None:
            state.kind, state.text = _report.FAILED, "has ended with an error:"
            state.cause, state.detail = peer.ending.cause, peer.ending.detail
            state.frames = state.detail.rstrip().split("\n")[-_messages.MOST_FRAMES :]
        elif not answer:
            state.cause, state.frames = outside.cause, outside.frames
            state.kind, state.works, state.detail = _report.SILENT, outside.works, outside.stack
            state.unseen, state.children = outside.unclear or not outside.seen, outside.children
            state.text = f"does not answer: {outside.condition}{', and works' if outside.works else ''}.{last}"
            if outside.stack:
                state.text += " It is in code that lets no other Python thread run:"
        elif peer.waits and point is not None and peer.is_in_the_call_of(point):
            state.kind, state.call, state.seconds = _report.WAITS, peer.call, peer.waits
        elif peer.waits:
            state.kind, state.call, state.seconds = _report.ELSEWHERE, peer.call, peer.waits
            state.text = f"waits in another call: {peer.call}, for {peer.waits:.0f} s, at {state.place}."
            if point is not None and peer.has_no_part_in(point):
                state.text += " It is not in the group that the others wait in."
        elif point is None and beat["idle"] >= self._owner.timeout:
            state.seconds, state.works, state.unseen = beat["idle"], beat["works"], beat["unclear"]
            state.text = f"has made no progress for {beat['idle']:.0f} s."
        elif beat["works"]:
            state.kind, state.works = _report.WORKS, True
            state.text = f"works: it is at {state.place}."
        else:
            state.seconds, state.unseen = beat["still"], beat["unclear"]
            state.text = f"is not there; its main thread has not moved for {beat['still']:.0f} s."
            if state.unseen:
                state.text += (
                    " Whether it works can't be told: it is woken, and has sockets that don't show what they carry."
                )
        return state

    # ---------------------------------------------------------------- ending

    def _abort(self) -> None:
        """End all ranks at the same moment: one that sees others go first ends with an error of its own."""
        silent: dict[str, list[int]] = {}
        for peer in self._ranks.values():
            lives = peer.ending is None or (peer.is_lost and not (peer.outside or _UNASKED).gone)
            if lives and not peer.answer:
                silent.setdefault(peer.key[0], []).append(peer.key[1])
        for peer in self._ranks.values():
            if peer.alive and peer.key != (_node.node_id(), self._identity.local_rank):
                peer.connection.send({"t": "abort", "silent": silent.get(peer.key[0], [])})
        time.sleep(GRACE)
        for local_rank in silent.get(_node.node_id(), []):
            self._job.end(local_rank)
        for rank, pid, began in _processes.ranks_by_environment(os.environ.get("MASTER_PORT", "")):
            if rank not in {peer.hello["rank"] for peer in self._ranks.values()}:
                _processes.end(pid, began)
        self._owner.end()


_UNASKED = Outside("its node can't be asked", seen=False)
_NO_BEAT: Message = {"place": "", "works": False, "unclear": False, "still": 0.0, "waits": 0.0, "idle": 0.0}
