"""Rank zero's knowledge of another rank: its identity, its last message, and how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Optional

from lightning_patches.ranks.hang._messages import Message
from lightning_patches.ranks.hang._registry import Outside
from lightning_patches.ranks.hang._report import Call
from lightning_patches.ranks.hang._wire import Connection

LOST = "lost"
NODE_UNREACHABLE = Outside("its node can't be queried", seen=False)
_LONGEST_ABSENCE = 30.0


@dataclass(frozen=True)
class Ending:
    """The ending of a rank.

    Args:
        kind: the kind that the rank reported, or ``LOST`` if it sent no last message.
        detail: the error that ended the rank.
    """

    kind: str
    detail: str = ""

    @property
    def cause(self) -> str:
        """The error in one line."""
        return self.detail.rstrip().rpartition("\n")[2]


@dataclass
class Peer:
    """A connected process. It is a rank after it has sent the message "hello".

    Args:
        connection: the connection to the process.
        descriptor: descriptor of the socket.
        address: network address of the process.
        hello: the message with its identity.
        beat: the last message with its state.
        heard_at: time of that message.
        answer: its report, while reports are collected.
        finished: True if its program has ended. Its exit handlers may still hang.
        ending: how it ended; ``None`` while it runs.
        ended_at: time of its end.
        outside: result of an examination by another process of its node.
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
    def stalled(self) -> float:
        return max(self.waits, float(self.beat["idle"])) if self.beat else 0.0

    def end(self, kind: str, detail: str = "") -> None:
        self.ending, self.ended_at = Ending(kind, detail), time.monotonic()

    @property
    def is_lost(self) -> bool:
        return self.ending is not None and self.ending.kind == LOST

    @property
    def has_gone(self) -> bool:
        """True if the process closed the connection and did not reconnect. A live rank reconnects in ten seconds."""
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

    def is_in_call_of(self, waiter: Peer) -> bool:
        """True if this rank waits in the same call as another rank."""
        if not self.alive or not self.waits:
            return False
        own, other = self.beat["pending"], waiter.beat["pending"]
        if own and other:
            return all(own[name] == other[name] for name in ("group", "number", "name"))
        numbers, others = self.beat["numbers"], waiter.beat["numbers"]
        same = all(numbers[group] == others[group] for group in numbers.keys() & others.keys())
        return bool(self.beat["what"] == waiter.beat["what"] and same and bool(numbers) == bool(others))

    def is_outside_group_of(self, waiter: Peer) -> bool:
        """True if another rank waits in a process group that does not include this rank."""
        pending = waiter.beat["pending"]
        return bool(pending and self.beat and self.beat["numbers"] and pending["group"] not in self.beat["numbers"])
