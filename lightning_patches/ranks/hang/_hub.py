"""The hub in rank zero: receive the states of all ranks, decide when to report, and end the job."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Optional, Protocol

from lightning_patches import notices
from lightning_patches.ranks import _node, _processes
from lightning_patches.ranks.hang import _messages, _report, _settings
from lightning_patches.ranks.hang._identity import Identity
from lightning_patches.ranks.hang._messages import FAILED, FINISHED, LONGEST_STACK
from lightning_patches.ranks.hang._peers import LOST, NODE_UNREACHABLE, Peer
from lightning_patches.ranks.hang._registry import THREADS, Job
from lightning_patches.ranks.hang._report import Next, Report
from lightning_patches.ranks.hang._server import Server
from lightning_patches.ranks.hang._states import states

_PATIENCE = 3.0
"""Seconds to wait for answers to a request for a report. A healthy rank answers within milliseconds."""
_PATIENCE_OUTSIDE = 6.0
_PATIENCE_AFTER_DEATH = 10.0
"""Seconds that other ranks may wait for a dead rank. With ``abort``, they are ended afterwards."""
_LONGEST_PAUSE = 3600.0
_LONGEST_START = 60.0
"""Seconds after which the message about the number of watched ranks also lists unwatched ranks."""
_ERRORS = 5
"""Consecutive internal errors after which the hub stops."""
GRACE = 0.2
"""Seconds between the message "abort" and the end of a rank."""


class Owner(Protocol):
    """The watch of the process that runs the hub."""

    timeout: float
    abort: bool
    identity: Optional[Identity]

    def end(self) -> None:
        """End this process and its children."""


class Hub:
    """The thread that receives the messages of all ranks.

    Args:
        job: the job's files on this node.
        owner: rank zero's watch.
    """

    def __init__(self, job: Job, owner: Owner) -> None:
        self._job, self._owner = job, owner
        self._reported_at = 0.0
        """Waiting time of the ranks at the last report; 0 before the first report."""
        self._reports = 0
        self._reported: list[tuple[str, ...]] = []
        """Situation in the last report."""
        self._reported_ranks: set[tuple[str, int]] = set()
        self._began = time.monotonic()
        self._counted = 0
        self._urgent, self._checked = threading.Event(), threading.Event()
        self.server = Server(job, lambda: self._identity, self._urgent)
        self._ranks = self.server.ranks
        job.sweep()
        self._thread = threading.Thread(target=self._run, name=f"{THREADS} hub", daemon=True)
        self._thread.start()

    def check_now(self, seconds: float) -> None:
        """Check again before rank zero ends with an error, since the death of another rank may be the cause.

        Args:
            seconds: time to wait for the check.
        """
        self._checked.clear()
        self._urgent.set()
        self._checked.wait(seconds)

    def _run(self) -> None:
        errors = 0
        while errors < _ERRORS:
            try:
                self.server.serve(_settings.pause(self._owner.timeout))
                urgent = self._urgent.is_set()
                self._check(urgent)
                self._show()
                if urgent:
                    self._urgent.clear()
                    self._checked.set()
                errors = 0
            except Exception as error:  # a bug here must not end the training
                errors += 1
                reason = f"{type(error).__name__}: {error}"
                time.sleep(0.2)
        _report.say(
            f"the hang watch of this job has stopped in {self._identity.name}, which collects the states of all ranks. "
            f"Hangs are no longer reported. Please report this error: {reason}"
        )

    # ---------------------------------------------------------------- decisions

    @property
    def _world(self) -> int:
        return self._identity.world_size

    @property
    def _identity(self) -> Identity:
        identity = self._owner.identity
        assert identity is not None  # a process without an identity has no hub
        return identity

    def _check(self, urgent: bool = False) -> None:
        self._count()
        timeout, abort = self._owner.timeout, self._owner.abort
        self._examine_lost_ranks()
        alive = [peer for peer in self._ranks.values() if peer.alive]
        died = [peer for peer in self._ranks.values() if peer.outside is not None and peer.outside.crashed]
        # If the check is urgent, rank zero ends with an error. The failure of another rank may be the cause.
        causes = [peer for peer in self._ranks.values() if urgent and peer.outside is not None and peer.outside.failed]
        new = [peer for peer in died or causes if peer.key not in self._reported_ranks]
        over = [peer for peer in died if time.monotonic() - peer.ended_at > min(timeout, _PATIENCE_AFTER_DEATH)]
        waits = max((peer.waits for peer in alive), default=0.0)
        seconds = self._stalled_for(alive, timeout)
        mismatch = not seconds and not self._reported_at and self._mismatch(alive)
        if new or mismatch or (seconds and seconds >= self._next_report(timeout)):
            self._report(waits if mismatch else seconds, at_once=mismatch or bool(new and not died))
            self._reported_ranks |= {peer.key for peer in new}
        elif not seconds and waits < self._reported_at:
            _report.print_line(f"no rank waits any more. The wait lasted {self._reported_at:.0f} s or longer.")
            self._reported_at = self._reports = 0
            self._reported = []
        if over and abort:
            _report.print_line(f"{over[0].name} has died: all ranks are ended now, with status {_report.STATUS}.")
            self._collect()
            self._abort()

    def _stalled_for(self, alive: list[Peer], timeout: float) -> float:
        """Return the seconds for which ranks have waited for each other, or for which no rank has moved.

        Returns 0 if this is shorter than the limit.
        """
        waits = [peer.waits for peer in alive]
        # A silent rank does not count as waiting, since the wait in its last message may have ended long ago.
        silent = time.monotonic() - max(_PATIENCE, 3 * _settings.pause(timeout))
        all_wait = len(alive) == self._world and all(waits) and all(peer.heard_at > silent for peer in alive)
        longest = min(waits) if all_wait else max(waits, default=0.0)  # min: the last rank's wait
        if longest >= self._patience(timeout):
            return longest
        if not alive or len(self._ranks) < self._world:
            return 0.0
        still = min(peer.stalled for peer in alive)
        return still if still >= timeout else 0.0

    def _next_report(self, timeout: float) -> float:
        last = self._reported_at
        return max(timeout, min(2 * last, last + _LONGEST_PAUSE)) if last else 0.0

    def _patience(self, timeout: float) -> float:
        """Return how many seconds ranks may wait for each other: fewer if a rank is gone."""
        gone = any(
            (peer.ending is not None and peer.ending.kind == FAILED) or (peer.outside is not None and peer.outside.gone)
            for peer in self._ranks.values()
        )
        return min(timeout, _PATIENCE_AFTER_DEATH) if gone else timeout

    def _mismatch(self, alive: list[Peer]) -> bool:
        """True if two ranks wait in different collectives that have the same number in the same group."""
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
        """Print how many ranks are watched when all are connected, or when this takes too long."""
        world = self._world
        if self._counted == world or (self._counted and not self.server.is_complete):
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
            text += f" Not rank {', '.join(map(str, absent))}: start it with the same LIGHTNING_PATCHES_HANG_TIMEOUT"
            if self._identity.one_node:
                text += ". A rank in a separate container may not be watched"
            else:
                text += (
                    ". If it can't connect to this node, set LIGHTNING_PATCHES_HANG_SECRET to the same 16 "
                    "characters or more on all nodes, and LIGHTNING_PATCHES_HANG_PORT to a port that no firewall blocks"
                )
            text += "."
        _report.print_line(text)

    def _examine_lost_ranks(self) -> None:
        """Examine ranks that have ended without a last message. Do it soon, since the exit status is lost later.

        Silent ranks of this node are also examined, since the children of a dead rank may keep its connection open.
        """
        late = time.monotonic() - 2 * _settings.pause(self._owner.timeout)
        for peer in list(self._ranks.values()):
            if peer.alive and peer.heard_at < late and peer.key[0] == _node.node_id():
                record = self._job.record(peer.key[1])
                if record is not None and record.gone:
                    peer.connection.close()
                    peer.end(FINISHED if peer.finished else LOST)
            if peer.is_lost and peer.outside is None:
                peer.outside = NODE_UNREACHABLE
                self._examine([peer])

    # ---------------------------------------------------------------- reports

    def _report(self, seconds: float, at_once: bool) -> None:
        timeout, abort = self._owner.timeout, self._owner.abort
        gpus = self._collect(children=True)
        alive = [peer for peer in self._ranks.values() if peer.alive]
        waiter = self._longest_waiting()
        died = any(peer.outside is not None and peer.outside.crashed for peer in self._ranks.values())
        if not died and not at_once and not self._stalled_for(alive, timeout):
            return  # the ranks have continued in the meantime
        report = self._make_report(waiter, seconds, gpus)
        works = [state for state in report.missing if state.works]
        unseen = [state for state in report.missing if state.unseen]
        # If all ranks have arrived, end the job only after a second report.
        may_end = (
            not works and not unseen and not at_once and (bool(report.call and report.missing) or self._reports > 0)
        )
        ends = abort and bool(seconds) and may_end
        if ends:
            report.after = Next(_report.ENDS_NOW)
        elif abort and died:
            report.after = Next(_report.ENDS_SOON, min(timeout, _PATIENCE_AFTER_DEATH))
        elif abort and works:
            report.after = Next(_report.STILL_WORKS, who=works[0].name)
        elif abort and unseen and seconds:
            report.after = Next(_report.MAY_WORK, who=unseen[0].name)
        elif abort and seconds and not at_once and not died:
            report.after = Next(_report.ENDS_LATER, 2 * seconds)
        elif seconds:
            report.after = Next(_report.KEEPS_WAITING, 2 * seconds)
        _report.publish(report, again=report.situation == self._reported)
        self._reported_at, self._reports, self._reported = seconds, self._reports + 1, report.situation
        if ends:
            self._abort()

    def _show(self) -> None:
        """Send the state of every rank to each `hang show` that has requested it."""
        if not self.server.viewers:
            return
        gpus = self._collect()
        waiter = self._longest_waiting()
        report = self._make_report(waiter, waiter.waits if waiter else 0.0, gpus)
        program = _messages.printable(" ".join([os.path.basename(sys.executable or "python"), *sys.argv]))
        job = {"program": program, "directory": os.getcwd(), "pid": os.getpid(), "session": os.getsid(0)}
        head = f"Job {job['pid']}, `{notices.cut(program)}` in {_messages.printable(os.getcwd())}:"
        answer = json.dumps({**report.as_dict(), "job": job, "text": f"{head}\n{report.text()}"})
        parts = [answer[i : i + LONGEST_STACK] for i in range(0, len(answer), LONGEST_STACK)]
        for viewer in list(self.server.viewers):
            for number, part in enumerate(parts, 1):
                viewer.connection.send({"t": "shown", "part": part, "last": number == len(parts)})
            viewer.connection.close()
        self.server.drop_closed()

    def _make_report(self, waiter: Optional[Peer], seconds: float, gpus: list[str]) -> Report:
        found = states(self._ranks.values(), waiter, self._identity, self._owner.timeout)
        return Report(found, waiter.call if waiter is not None else None, seconds, gpus)

    def _longest_waiting(self) -> Optional[Peer]:
        """Return the rank that has waited longest for others; ``None`` if none waits."""
        waiting = [peer for peer in self._ranks.values() if peer.alive and peer.waits]
        return max(waiting, key=lambda peer: peer.waits, default=None)

    def _collect(self, children: bool = False) -> list[str]:
        """Request a report from every rank, and examine silent ranks. Return a line per GPU.

        Args:
            children: also request the state of the child processes of ranks that do not wait.
        """
        nodes: set[str] = set()
        requested = []
        for peer in self._ranks.values():
            peer.answer = None
            if peer.alive:
                peer.outside = None
                request = {"gpus": peer.key[0] not in nodes, "children": children and not peer.waits}
                peer.connection.send({"t": "report", **request})
                nodes.add(peer.key[0])
                requested.append(peer)
        self.server.serve_until(lambda: all(peer.answer or not peer.alive for peer in requested), _PATIENCE)
        self._examine([peer for peer in requested if not peer.answer])
        return [
            f"{line} (host {peer.hello['host']})"
            for peer in self._ranks.values()
            for line in (peer.answer or {}).get("gpus", [])
        ]

    def _examine(self, silent: list[Peer]) -> None:
        """Examine ranks of this node, and request that other nodes examine theirs."""
        elsewhere = []
        for peer in silent:
            node, local_rank = peer.key
            if node == _node.node_id():
                peer.outside = self._job.examine(local_rank, peer.ending is None)
                continue
            neighbour = next((p for p in self._ranks.values() if p.alive and p is not peer and p.key[0] == node), None)
            if neighbour is not None:
                neighbour.connection.send({"t": "probe", "local_rank": local_rank, "lives": peer.ending is None})
                elsewhere.append((peer, peer.outside))
        self.server.serve_until(
            lambda: all(peer.outside is not before for peer, before in elsewhere), _PATIENCE_OUTSIDE
        )

    # ---------------------------------------------------------------- end of the job

    def _abort(self) -> None:
        """End all ranks at the same time, since a rank that ends later than others prints a misleading error."""
        silent: dict[str, list[int]] = {}
        for peer in self._ranks.values():
            lives = peer.ending is None or (peer.is_lost and not (peer.outside or NODE_UNREACHABLE).gone)
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
