"""Determine the state of each rank, for a report."""

from __future__ import annotations

import os
import socket
from typing import Collection, Optional

from lightning_patches.ranks import _processes
from lightning_patches.ranks.hang import _messages, _report
from lightning_patches.ranks.hang._identity import Identity
from lightning_patches.ranks.hang._messages import FINISHED, STOPPED, Message
from lightning_patches.ranks.hang._peers import NODE_UNREACHABLE, Peer
from lightning_patches.ranks.hang._report import State

_NO_BEAT: Message = {"place": "", "works": False, "unclear": False, "still": 0.0, "waits": 0.0, "idle": 0.0}


def states(peers: Collection[Peer], waiter: Optional[Peer], identity: Identity, timeout: float) -> list[State]:
    """Return the state of each rank.

    Args:
        peers: the ranks that have sent the message "hello".
        waiter: the rank that has waited longest for others; ``None`` if no rank waits.
        identity: identity of rank zero.
        timeout: seconds without progress after which a rank is reported as not moving.
    """
    known = {peer.hello["rank"]: peer for peer in peers}
    ranks = range(identity.world_size)
    absent = [rank for rank in ranks if rank not in known]
    unnamed = [peer for peer in peers if peer.hello["rank"] is None]
    found = [_state(known[rank], waiter, timeout) for rank in ranks if rank in known]
    found += [_state(peer, waiter, timeout) for peer in unnamed]
    found += _absent(absent[: len(absent) - len(unnamed)], peers, identity.sees_all) if absent else []
    return found


def _absent(ranks: list[int], peers: Collection[Peer], sees_all: bool) -> list[State]:
    """Return the states of ranks that have not sent the message "hello"."""
    started: dict[int, tuple[int, int]] = {}
    for rank, pid, began in _processes.ranks_by_environment(os.environ.get("MASTER_PORT", "")):
        started.setdefault(rank, (pid, began))
    states = []
    host = socket.gethostname()
    for rank in ranks:
        if rank in started:
            pid, began = started[rank]
            found = _processes.works(pid)
            works = bool(found)
            text = f"has not contacted rank zero: {_processes.condition(pid, began)}"
            text += ", and works." if works else "."
            where = f"host {host}, pid {pid}"
            kind = _report.WORKS if works else _report.UNWATCHED
            state = State(f"rank {rank}", rank, where, kind, text=text, place="start-up", works=works)
            state.unseen = found is None
            states.append(state)
        elif any(peer.beat and peer.beat["numbers"] for peer in peers):
            text = "is not watched: it is in the process group, and has not contacted rank zero."
            states.append(State(f"rank {rank}", rank, "", _report.UNWATCHED, text=text, unseen=True))
        else:
            text = f"has not contacted rank zero, and no process of host {host} was started for it"
            text += "." if sees_all else " (unwatched ranks on other hosts or in containers are not visible)."
            kind = _report.ABSENT if sees_all else _report.UNWATCHED
            states.append(State(f"rank {rank}", rank, "", kind, text=text, unseen=not sees_all))
    return states


def _state(peer: Peer, waiter: Optional[Peer], timeout: float) -> State:
    """Return the state of a rank that has sent the message "hello"."""
    beat, answer = peer.beat or _NO_BEAT, peer.answer or {}
    state = State(peer.name, peer.hello["rank"], peer.where, _report.STILL, place=beat["place"])
    state.detail, state.collective = answer.get("stack", ""), answer.get("collective", "")
    state.frames = answer.get("frames", [])
    state.children, state.recorder = answer.get("children", []), answer.get("recorder", [])
    if peer.is_lost or peer.ending is not None or not answer:
        _describe_silent(state, peer)
    elif peer.waits and waiter is not None and peer.is_in_call_of(waiter):
        state.kind, state.call, state.seconds = _report.WAITS, peer.call, peer.waits
    elif peer.waits:
        state.kind, state.call, state.seconds = _report.ELSEWHERE, peer.call, peer.waits
        state.text = f"waits in another call: {peer.call}, for {peer.waits:.0f} s, at {state.place}."
        if waiter is not None and peer.is_outside_group_of(waiter):
            state.text += " It is not in the process group in which the others wait."
    elif waiter is None and beat["idle"] >= timeout:
        state.seconds, state.works, state.unseen = beat["idle"], beat["works"], beat["unclear"]
        state.text = f"has made no progress for {beat['idle']:.0f} s."
    elif beat["works"]:
        state.kind, state.works = _report.WORKS, True
        state.text = f"is busy at {state.place}."
    else:
        state.seconds, state.unseen = beat["still"], beat["unclear"]
        state.text = f"has not arrived; its main thread has not moved for {beat['still']:.0f} s."
        if state.unseen:
            state.text += " It may be busy: it wakes up, and its network traffic can't be measured."
    return state


def _describe_silent(state: State, peer: Peer) -> None:
    """Complete the state of a rank that has ended, was lost, or does not answer."""
    outside = peer.outside or NODE_UNREACHABLE
    last = f" Last seen at {state.place}." if state.place else ""
    if peer.is_lost:
        state.cause = outside.cause
        died = _report.OUT_OF_MEMORY if outside.for_memory else _report.DIED
        state.kind, state.works = died if outside.gone else _report.SILENT, outside.works
        state.unseen = (outside.unclear or not outside.seen) and not peer.has_gone
        what = "has ended" if outside.gone else "was lost"
        state.text = f"{what} without an error message: {outside.condition}.{last}"
    elif peer.ending is not None and peer.ending.kind == FINISHED:
        state.kind, state.text = _report.LEFT, f"has left: its program has ended.{last}"
    elif peer.ending is not None and peer.ending.kind == STOPPED:
        state.kind, state.text, state.unseen = _report.UNWATCHED, f"is not watched any more.{last}", True
    elif peer.ending is not None:
        state.kind, state.text = _report.FAILED, "has ended with an error:"
        state.cause, state.detail = peer.ending.cause, peer.ending.detail
        state.frames = state.detail.rstrip().split("\n")[-_messages.MOST_FRAMES :]
    else:
        state.cause, state.frames = outside.cause, outside.frames
        state.kind, state.works, state.detail = _report.SILENT, outside.works, outside.stack
        state.unseen, state.children = outside.unclear or not outside.seen, outside.children
        state.text = f"does not answer: {outside.condition}{', and works' if outside.works else ''}.{last}"
        if outside.stack:
            state.text += " It is in code that blocks all other Python threads:"
