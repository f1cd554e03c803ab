"""Attacks on the hang watch's sockets: processes outside the job learn nothing and stop nothing."""

from __future__ import annotations

import encodings.idna  # noqa: F401  # imported now, since another user may not be able to read it
import hashlib
import hmac
import json
import os
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.ranks import _node
from lightning_patches.ranks.hang import _hub, _messages, _registry, _secret, _server, _watch, _wire
from lightning_patches.ranks.hang._identity import Identity
from tests.distributed.processes import run_ranks
from tests.support.nodes import two_nodes
from tests.support.ports import free_port
from tests.support.run import variables

SECRET = b"known to the job's ranks alone"
WORLD = 4
HELLO = {"t": "hello", "rank": 1, "local_rank": 1, "node": 0, "node_id": "n", "host": "vm", "pid": 1}
BEAT = {
    "t": "beat", "place": "train.py:12 in training_step", "at_end": False, "waits": 1.0, "what": "barrier",
    "numbers": {"0": 3}, "pending": {"name": "barrier", "group": "0", "number": 3, "sizes": "[]", "done": False},
    "still": 1.0, "idle": 1.0, "works": False, "unclear": False,
}  # fmt: skip
PROBED = {
    "t": "probed", "local_rank": 1, "cause": "", "hint": "", "stack": "", "works": False, "unclear": False,
    "gone": True, "crashed": False, "for_memory": False, "failed": False, "seen": True, "children": [],
}  # fmt: skip
REPORT = {
    "t": "report", "stack": "File", "frames": ["train.py:12 in training_step"], "collective": "",
    "recorder": [BEAT["pending"]], "children": ["child process 7"], "gpus": ["GPU 0"],
}  # fmt: skip
TO_HUB = [HELLO, BEAT, PROBED, REPORT, {"t": "bye", "kind": "finished", "detail": ""}, {"t": "show"}]
TO_RANK: list[dict[str, Any]] = [
    {"t": "welcome", "host": "vm", "pid": 1}, {"t": "taken"}, {"t": "shown", "part": "{", "last": True}, {"t": "pulse"},
    {"t": "report", "gpus": True, "children": True}, {"t": "probe", "local_rank": 0, "lives": True},
    {"t": "abort", "silent": [1, 2]},
]  # fmt: skip


class Target:
    """A hub and its port."""

    def __init__(self, timeout: float = 60.0) -> None:
        self.identity: Identity | None = Identity(
            0, 0, 0, WORLD, "127.0.0.1", False, f"test {os.getpid()} {time.monotonic()}"
        )
        self.job = _registry.Job(self.identity.key)
        self.timeout, self.abort, self.ended = timeout, False, False
        self.hub = _hub.Hub(self.job, self)
        self.port = free_port()
        assert self.hub.server.listen_on_port([self.port], SECRET)

    def end(self) -> None:
        self.ended = True

    def stranger(self) -> socket.socket:
        return self.stranger_from("127.0.0.1")

    def stranger_from(self, address: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=(address, 0))

    def friend(self, **hello: Any) -> _wire.Connection:
        """Connect as a rank. Retries, as ranks do, while the hub is busy with a report."""
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            connection = _wire.connect(("127.0.0.1", self.port), SECRET)
            if connection is not None and connection.send({**HELLO, **hello}) and "welcome" in kinds(connection, 1):
                return connection
        raise AssertionError("the hub welcomes nobody")

    def check(self) -> None:
        """Check that the hub still runs and accepts a rank."""
        assert self.hub._thread.is_alive() and not self.ended
        for peer in list(self.hub.server.ranks.values()):
            peer.connection.close()
        deadline = time.monotonic() + 60  # the hub may still be collecting reports
        while any(peer.alive for peer in self.hub.server.ranks.values()) and time.monotonic() < deadline:
            time.sleep(0.05)
        friend = self.friend(rank=3, local_rank=3)
        friend.send(BEAT)
        assert kinds(friend, 1) == ["pulse"]
        friend.close()


def kinds(connection: _wire.Connection, count: int, seconds: float = 60) -> list[str]:
    found: list[str] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and connection.open and time.monotonic() < deadline:
        connection.wait(0.1)
        found += [message["t"] for message in connection.receive()]
    return found


def is_closed(sock: socket.socket, seconds: float = 60) -> bool:
    sock.settimeout(seconds)
    try:
        while sock.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.hub.server.close()


def sign(session: bytes, number: int, text: bytes) -> bytes:
    return (
        hmac.new(session, b"rank %d " % number + text, hashlib.sha256).hexdigest()[:32].encode() + b" " + text + b"\n"
    )


@pytest.mark.parametrize(
    "noise",
    [
        b"[" * 300_000 + b"\n",
        b"[" * 300_000,
        b"\n",
        b"\n" * 70_000,
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"t": "hello", "key": "29500  ", "rank": 1}\n',
        b"0" * 32 + b" " + b"0" * 64 + b"\n",
        b"0" * 32 + b" " + b"0" * 5000,
        bytes(range(256)) * 300,
    ],
    ids=lambda noise: repr(noise[:12]),
)
def test_unauthenticated_peer_is_disconnected(noise: bytes, target: Target) -> None:
    stranger = target.stranger()
    try:
        stranger.sendall(noise)
    except OSError:
        pass
    assert is_closed(stranger)
    target.check()


def test_silent_peer_is_disconnected_after_five_seconds(target: Target) -> None:
    stranger = target.stranger()
    stranger.sendall(b"0123")  # an incomplete greeting
    assert is_closed(stranger, 5 + 30)
    target.check()


def test_many_connections_use_few_descriptors(target: Target) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    friend = target.friend()
    before = len(os.listdir("/proc/self/fd"))
    strangers = []
    for _ in range(1100):
        try:
            strangers.append(target.stranger())
        except OSError:
            break
    assert len(strangers) > 1000
    time.sleep(1)
    on_hubs_side = len(os.listdir("/proc/self/fd")) - before - len(strangers)
    assert on_hubs_side <= _server.MOST_PENDING + WORLD, on_hubs_side
    friend.send(BEAT)
    assert kinds(friend, 1) == ["pulse"]  # ranks are still served
    for stranger in strangers:
        stranger.close()
    friend.close()
    target.check()


def test_flood_from_one_address_does_not_block_a_slow_peer_from_another(target: Target) -> None:
    """Fifty connections per second, some of them silent, while a rank takes half a second for its greeting."""
    over = threading.Event()
    kept = [target.stranger_from("127.0.0.2") for _ in range(40)]

    def flood() -> None:
        while not over.is_set():
            kept.append(target.stranger_from("127.0.0.2"))
            if random.random() < 0.5:
                kept.pop().close()
            time.sleep(0.01)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        time.sleep(0.5)
        rank = _wire.Connection(target.stranger(), SECRET, as_hub=False)
        assert rank.wait(60.0)  # it was accepted
        time.sleep(0.6)
        while rank.open and not rank.known and rank.wait(20.0):
            rank.receive()
        assert rank.known
    finally:
        over.set()
        thread.join()
        for stranger in kept:
            stranger.close()
    rank.close()
    target.check()


def test_wrong_secret_is_refused(target: Target) -> None:
    assert _wire.connect(("127.0.0.1", target.port), b"29500  ") is None
    target.check()


def test_replayed_messages_are_refused(target: Target) -> None:
    """Replays a recorded greeting and all messages after it."""
    real = _wire.connect(("127.0.0.1", target.port), SECRET)
    assert real is not None
    proof = real._prove(b"rank", real._nonce)
    stranger = target.stranger()
    stranger.recv(100)
    stranger.sendall(real._nonce + b" " + proof + b"\n" + sign(real._session, 0, json.dumps(HELLO).encode()))
    assert is_closed(stranger)
    target.check()


@pytest.mark.parametrize("how", ["again", "left out", "changed", "unsigned", "of the hub"])
def test_added_or_changed_lines_are_refused(how: str, target: Target) -> None:
    friend = target.friend()
    bye = json.dumps({"t": "bye", "kind": "finished", "detail": "finished"}).encode()
    line = {
        "again": sign(friend._session, 0, json.dumps({**HELLO}).encode()),
        "left out": sign(friend._session, 2, bye),
        "changed": sign(friend._session, 1, bye).replace(b"finished", b"finally "),
        "unsigned": bye + b"\n",
        "of the hub": sign(friend._session, 1, bye).replace(b"rank", b"hub"),
    }[how]
    if how == "of the hub":
        text = json.dumps({"t": "pulse"}).encode()
        line = friend._sign(True, 1, text) + b" " + text + b"\n"
    friend._socket.sendall(line)
    assert kinds(friend, 1) == [] and not friend.open
    assert not target.hub.server.ranks["n", 1].finished
    target.check()


def test_impostor_that_listens_first_learns_nothing() -> None:
    """The impostor gets a proof that is valid only for its nonce, and no rank obeys it."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def play() -> None:
        sock, _ = listener.accept()
        sock.sendall(b"lightning_patches 2 " + b"0" * 32 + b"\n")
        heard.append(sock.recv(4096))
        sock.sendall(b"0" * 64 + b"\n" + b"0" * 32 + b' {"t": "abort", "silent": [0]}\n')
        heard.append(sock.recv(4096))

    impostor = threading.Thread(target=play, daemon=True)
    impostor.start()
    assert _wire.connect(listener.getsockname(), SECRET) is None
    impostor.join(60)
    assert len(heard[0]) == 32 + 1 + 64 + 1 and heard[1] == b""
    listener.close()


def test_peer_that_echoes_messages_is_refused() -> None:
    """The peer sends back everything that it receives."""
    one, other = socket.socketpair(socket.AF_UNIX)
    rank = _wire.Connection(one, SECRET, as_hub=False)
    other.sendall(b"lightning_patches 2 " + rank._nonce + b"\n")
    rank.receive()
    proof = other.recv(200).split(b" ")[1]
    other.sendall(proof)
    rank.receive()
    assert not rank.open and not rank.known


def test_other_users_of_the_node_are_refused(target: Target, tmp_path: Path) -> None:
    """Files and socket are private to the user. In addition, the kernel provides the peer's user."""
    for path in (target.job.path, target.job.socket, os.path.join(target.job.path, "secret")):
        target.job.secret()
        assert os.stat(path).st_mode & 0o077 == 0
    if os.getuid() != 0:
        return
    assert as_nobody(lambda: connect(target.job.socket)) == "PermissionError"
    path = str(tmp_path / "hub")
    listener = _wire.listen_here(path)
    for parent in (*list(tmp_path.parents)[:4], tmp_path):
        os.chmod(parent, 0o755)
    os.chmod(path, 0o777)
    listener.setblocking(True)
    accepted: list[_wire.Connection] = []
    thread = threading.Thread(
        target=lambda: accepted.append(_wire.Connection(listener.accept()[0], SECRET, as_hub=True))
    )
    thread.start()
    assert as_nobody(lambda: connect(path)) == "b''"
    thread.join(60)
    assert not accepted[0].open
    listener.close()


@pytest.mark.parametrize("address", [*_wire.LOOPBACK, "::"])
def test_other_user_on_loopback_is_refused_even_with_the_secret(address: str) -> None:
    """Another user who read the secret from torch's store connects as a hub and as a rank."""
    if os.getuid() != 0:
        pytest.skip("needs two users")
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    both = address == "::"  # listens on IPv6 and IPv4; the peer uses IPv4
    try:
        listener = socket.create_server((address, 0), family=kind, dualstack_ipv6=both)
    except OSError:
        pytest.skip(f"{address} is not there")
    host = "127.0.0.1" if both else address
    with listener:
        place = (host, listener.getsockname()[1])
        hubs: list[_wire.Connection] = []

        def be_hub() -> None:
            for _ in range(2):
                hubs.append(_wire.Connection(listener.accept()[0], SECRET, as_hub=True))
                while hubs[-1].open and not hubs[-1].known:
                    hubs[-1].wait(1.0)
                    hubs[-1].receive()

        thread = threading.Thread(target=be_hub, daemon=True)
        thread.start()
        assert as_nobody(lambda: str(_wire.connect(place, SECRET))) == "None"
        rank = _wire.connect(place, SECRET)
        thread.join(60)
        assert rank is not None and [hub.known for hub in hubs] == [False, True]
    with socket.create_server((address, 0), family=kind, dualstack_ipv6=both) as listener:
        place = (host, listener.getsockname()[1])
        as_nobody_too: list[str] = []
        claim = lambda: as_nobody_too.append(as_nobody(lambda: accept(listener)))  # noqa: E731
        impostor = threading.Thread(target=claim, daemon=True)
        impostor.start()
        assert _wire.connect(place, SECRET) is None
        impostor.join(60)
        assert as_nobody_too == ["False"]


def accept(listener: socket.socket) -> str:
    """Act as the hub for a peer. Return True if it proved that it knows the secret."""
    hub = _wire.Connection(listener.accept()[0], SECRET, as_hub=True)
    while hub.open and not hub.known:
        hub.wait(1.0)
        hub.receive()
    return str(hub.known)


def connect(path: str) -> str:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(20)
    sock.connect(path)
    return repr(sock.recv(10))


def as_nobody(function: Callable[[], str]) -> str:
    """Run a function in a process of another user. Return its result, or the name of the error that it raises."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            printed = function()
        except BaseException as error:
            printed = type(error).__name__
        os.write(write, printed.encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        printed = pipe.read()
    os.waitpid(child, 0)
    return printed


@pytest.mark.parametrize(
    "message",
    [
        [],
        {},
        {"t": []},
        {"t": "stop"},
        {"t": "abort", "silent": [0]},
        {**HELLO, "rank": "1"},
        {**HELLO, "rank": True},
        {**HELLO, "rank": 1.0},
        {**HELLO, "rank": -1},
        {**HELLO, "rank": 10**4000},
        {**HELLO, "world": 3_000_000},
        {**HELLO, "signal": 9},
        {**HELLO, "host": "x" * 300},
        {k: v for k, v in HELLO.items() if k != "pid"},
        {**BEAT, "waits": "abc"},
        {**BEAT, "waits": -1.0},
        {**BEAT, "waits": float("nan")},
        {**BEAT, "waits": float("inf")},
        {**BEAT, "numbers": {"0": "3"}},
        {**BEAT, "numbers": {str(i): i for i in range(100)}},
        {**BEAT, "pending": {"name": "barrier"}},
        {**BEAT, "works": 1},
        {**REPORT, "gpus": ["x"] * 1000},
        {**PROBED, "pid": 1},
    ],
    ids=lambda message: json.dumps(message)[:40],
)
def test_invalid_message_closes_the_connection(message: Any, target: Target) -> None:
    friend = target.friend()
    friend.send(message)
    assert kinds(friend, 1) == [] and not friend.open
    target.check()


def test_rank_beyond_the_world_size_is_refused(target: Target) -> None:
    connection = _wire.connect(("127.0.0.1", target.port), SECRET)
    assert connection is not None
    connection.send({**HELLO, "rank": WORLD, "local_rank": 0})
    assert kinds(connection, 1) == ["taken"]
    target.check()


def test_deep_json_and_long_lines_are_refused(target: Target) -> None:
    for text in (
        b"[" * 300_000,
        b'{"t": "bye", "kind": "failed", "detail": "' + b"x" * 900_000 + b'"}',
        b"1" * 200_000,
    ):
        friend = target.friend()
        friend._socket.setblocking(True)
        try:
            friend._socket.sendall(sign(friend._session, 1, text))
        except OSError:
            pass
        friend._socket.setblocking(False)
        assert kinds(friend, 1) == [] and not friend.open
    friend = target.friend()
    friend._socket.setblocking(True)
    with pytest.raises(OSError):  # noqa: PT011, PT012
        for _ in range(200):  # a line without an end
            friend._socket.sendall(b"x" * (1 << 16))
    target.check()


def test_peer_that_does_not_read_blocks_others_only_briefly(target: Target) -> None:
    deaf = target.friend()
    friend = target.friend(rank=2, local_rank=2)
    text = json.dumps(BEAT).encode()
    for number in range(1, 30_000):
        deaf._socket.setblocking(True)
        deaf._socket.settimeout(5)
        try:
            deaf._socket.sendall(sign(deaf._session, number, text))
        except OSError:
            break
    friend.send(BEAT)
    assert kinds(friend, 1) == ["pulse"]
    deaf.close()
    target.check()


def mutated(message: dict[str, Any], random_: random.Random) -> bytes:
    """Return the message with an error: a changed value, field or byte."""
    odd: list[Any] = [
        None, True, False, -1, 0, 1, 2**31, 2**63, 10**30, 1e308, -0.0, float("nan"), float("inf"), "", "x" * 70_000,
        "\0", "\ud800", [], [[]], {}, {"": None}, [None], {"0": 1}, {"0": 1e9}, "barrier", 3, [1, 2], ["GPU"],
    ]  # fmt: skip
    changed: dict[Any, Any] = dict(message)
    for _ in range(random_.randrange(1, 3)):
        way = random_.randrange(6)
        name = random_.choice(list(changed) or ["t"])
        if way <= 2:
            changed[name] = random_.choice(odd)
        elif way == 3:
            changed.pop(name, None)
        elif way == 4:
            changed[random_.choice(["signal", "world", "pid", "kill", "x"])] = random_.choice(odd)
        elif isinstance(changed.get(name), dict) and changed[name]:
            changed[name] = {**changed[name], random_.choice(list(changed[name])): random_.choice(odd)}
    data = bytearray(json.dumps(changed).encode())
    if random_.random() < 0.4:
        for _ in range(random_.randrange(1, 4)):
            data[random_.randrange(len(data))] = random_.randrange(256)
    if random_.random() < 0.1:
        del data[random_.randrange(len(data)) :]
    return bytes(data)


def test_ranks_that_all_wait_are_ended_by_the_wait_of_the_last_arrival(target, capfd):
    """The last rank may have just arrived after a long pause, and then all continue at once."""
    friends = [target.friend(rank=rank, local_rank=rank) for rank in range(WORLD)]
    target.timeout, target.abort = 20.0, True

    def go_on(waits: list[float], seconds: float, until: str | None = None) -> str:
        deadline = time.monotonic() + seconds
        printed = ""
        while time.monotonic() < deadline and not target.ended and (until is None or until not in printed):
            for friend, own in zip(friends, waits):
                friend.send({**BEAT, "waits": own})
                friend.wait(0.02)
                if any(message["t"] == "report" for message in friend.receive()):
                    friend.send({**BEAT, "waits": own})
                    friend.send(REPORT)
            printed += capfd.readouterr().err
        return printed + capfd.readouterr().err

    go_on([5.0, 5.0, 5.0, 5.0], 1)  # else some would wait for ranks that have not reported their wait yet
    assert "no rank is missing" not in go_on([500.0, 500.0, 500.0, 5.0], 6) and not target.ended
    printed = go_on([500.0, 500.0, 500.0, 25.0], 60, "after 50 s")
    assert (
        "no rank is missing" in printed and "ended if nothing has changed after 50 s" in printed and not target.ended
    ), printed
    assert "All ranks are ended now" in go_on([530.0, 530.0, 530.0, 55.0], 60) and target.ended


def test_rank_that_becomes_silent_during_a_short_wait_is_reported(target, capfd):
    """A rank that holds the GIL right after a collective: its last message reported a wait."""
    friends = [target.friend(rank=rank, local_rank=rank) for rank in range(WORLD)]
    target.timeout = 20.0
    friends[-1].send({**BEAT, "waits": 0.1})
    printed, began = "", time.monotonic()
    while "does not answer" not in printed and (waits := time.monotonic() - began) < 90:
        for friend in friends[:-1]:
            friend.send({**BEAT, "waits": waits + 1})
            friend.wait(0.1)
            for message in friend.receive():
                if message["t"] == "report":
                    friend.send(REPORT)
                elif message["t"] == "probe":
                    friend.send({**PROBED, "local_rank": WORLD - 1, "cause": "the process is sleeping", "gone": False})
        printed += capfd.readouterr().err
    assert f"rank {WORLD - 1} does not answer (the process is sleeping); ranks 0 to {WORLD - 2} in barrier 3" in printed


def test_fuzzed_messages_raise_nothing() -> None:
    """120,000 messages in both directions: each is refused, or has exactly the fields of its kind."""
    random_ = random.Random(14)
    taken = 0
    for index in range(120_000):
        to_hub = bool(index % 2)
        message = random_.choice(TO_HUB if to_hub else TO_RANK)
        found = _messages.parse(mutated(message, random_), to_hub)
        if found is not None:
            forms = _messages.TO_HUB if to_hub else _messages.TO_RANK
            assert found.keys() == {"t", *forms[found["t"]]}
            assert found.get("rank") is None or type(found["rank"]) is int
            taken += 1
    assert 1000 < taken < 60_000  # some mutations are valid


def test_fuzzed_messages_of_authenticated_peers_raise_nothing() -> None:
    """Authenticated peers send arbitrary valid messages: they are reported, and no rank is ended."""
    target = Target(timeout=1.0)
    random_ = random.Random(14)
    values = {
        "waits": [0, 0.5, 3.0, 1e9],
        "what": ["", "barrier", "backward"],
        "numbers": [{}, {"0": 3}, {"0": 4}, {"1": 1}, {"0": -1}],
        "pending": [None, BEAT["pending"], {**BEAT["pending"], "name": "all_reduce"}],  # type: ignore[dict-item]
        "still": [0, 5.0, 1e9],
        "idle": [0, 5.0, 1e9],
        "works": [True, False],
        "unclear": [True, False],
        "local_rank": [0, 1, 2, 3],
        "rank": [0, 1, 2, 3, None],
        "kind": ["finished", "stopped", "failed"],
        "detail": ["", "ValueError: x\x1b[2J"],
    }
    began = time.monotonic()
    connections: dict[int, _wire.Connection] = {}
    printed = 0
    while printed < 20_000 and time.monotonic() - began < (15 if printed > 100 else 150):
        number = random_.randrange(WORLD)
        connection = connections.get(number)
        if connection is None or not connection.open:
            connection = _wire.connect(("127.0.0.1", target.port), SECRET)
            if connection is None:
                continue
            connections[number] = connection
            connection.send({**HELLO, "rank": number, "local_rank": number})
        message = dict(random_.choices(TO_HUB, [1, 80, 2, 16, 0.02, 0])[0])
        message.update({name: random_.choice(values[name]) for name in message.keys() & values.keys()})
        connection.send(message)
        connection.receive()
        printed += 1
    assert printed > 100  # a hub that reports all the time answers slowly
    target.timeout = 60.0
    target.check()
    target.hub.server.close()


def test_hub_that_stops_after_errors_prints_a_line(monkeypatch, capsys):
    target = Target(timeout=1.0)
    monkeypatch.setattr(target.hub, "_check", lambda hurries: {}["no such rank"])
    target.hub._thread.join(60)
    target.hub.server.close()
    assert not target.hub._thread.is_alive() and not target.ended
    assert (
        "lightning_patches: the hang watch of this job has stopped in rank 0, which collects the states of all ranks. "
        "Hangs are no longer reported. Please report this error: KeyError: 'no such rank'\n"
    ) in capsys.readouterr().err


def test_watch_that_stops_after_errors_prints_a_line(monkeypatch, capsys):
    watch = _watch.Watch(timeout=60.0, abort=False)
    watch.identity = Identity(3, 1, 1, WORLD, "10.0.0.1", False, "key")
    monkeypatch.setattr(watch._sampler, "sample", lambda torch: {}["no such thread"])
    watch._thread.start()
    watch._thread.join(60)
    assert not watch._thread.is_alive()
    assert (
        "lightning_patches: the hang watch has stopped in rank 3, which is no longer watched. Please report this "
        "error: KeyError: 'no such thread'\n"
    ) in capsys.readouterr().err


def test_ports_can_not_be_computed_without_the_secret() -> None:
    identity = Identity(1, 1, 1, 4, "10.0.0.1", False, "29500  ")
    ports = _secret.ports(SECRET, identity)
    assert len(set(ports)) == 4 and all(10000 <= port < 30000 for port in ports)
    assert ports == _secret.ports(SECRET, identity) != _secret.ports(b"another secret..", identity)


def test_second_port_is_used_when_the_first_is_taken() -> None:
    first, second = free_port(), free_port()
    one, other = (_wire.listen([first, second], everywhere=True) for _ in range(2))
    assert one is not None and other is not None
    assert (one.getsockname()[1], other.getsockname()[1]) == (first, second)
    one.close()
    other.close()


@pytest.mark.parametrize("taken_by", ["others may write", "link", "file"])
def test_other_user_who_takes_the_directory_does_not_disable_the_watch(taken_by, tmp_path, monkeypatch, capfd):
    """The watch skips an unsafe directory and warns. With no safe directory it stays off and warns."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.setattr(_node, "BASES", (str(first), str(second)))
    monkeypatch.setattr(_node, "_warned", set())
    monkeypatch.setattr("tempfile.tempdir", str(first))
    taken = first / f"lightning_patches-{os.getuid()}"
    if taken_by == "link":
        taken.symlink_to(tmp_path)
    elif taken_by == "file":
        taken.touch()
    else:
        taken.mkdir()
        taken.chmod(0o777)
    for _ in range(2):
        assert _registry.Job("key").path.startswith(f"{taken}-1/")
    printed = capfd.readouterr().err
    assert printed.count("only this user can write to") == printed.count("is used instead") == 1, printed
    assert taken.with_name(f"{taken.name}-1").stat().st_mode & 0o077 == 0
    if taken_by == "file":
        taken.unlink()
        assert _registry.Job("key").path.startswith(f"{taken}-1/"), "others may be there already"


def test_separate_processes_share_a_directory_or_report_that_there_is_none(tmp_path: Path) -> None:
    """This holds for any names that others have taken, and any TMPDIR that the launcher sets for each rank."""
    program = """
import os, sys
from pathlib import Path
from lightning_patches.ranks import _node
_node.BASES = tuple(sys.argv[1:])
print(_node.directory("jobs"))
"""
    bases = [tmp_path / "shm", tmp_path / "run"]
    for base in bases:
        base.mkdir()

    def start(number: int) -> subprocess.CompletedProcess[str]:
        (tmp_path / str(number)).mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-c", program, *map(str, bases)],
            env=variables(TMPDIR=str(tmp_path / str(number))),
            capture_output=True,
            text=True,
        )

    names = [f"lightning_patches-{os.getuid()}", *(f"lightning_patches-{os.getuid()}-{one}" for one in range(1, 8))]
    places = [base / name for base in bases for name in names]
    for number, place in enumerate(places):
        first, second = start(1), start(2)
        assert first.stdout == second.stdout == f"{place}/jobs\n", (first, second)
        assert first.stderr.count("is used instead") == (number > 0), first
        (place / "jobs").rmdir()
        place.chmod(0o777)
    for number in (1, 2):
        ended = start(number)
        assert ended.returncode == 1 and "must be a directory that only this user can write to" in ended.stderr, ended


@pytest.mark.distributed
def test_job_on_one_node_needs_no_port() -> None:
    ended = run_ranks(
        "hang_ranks",
        [["tells_ports", "before"], ["arrives", "before"]],
        {"LIGHTNING_PATCHES_HANG_TIMEOUT": "60", "MASTER_ADDR": "127.0.0.1"},
    )
    assert ended.statuses == [0, 0], ended
    assert "ports that the watch has opened: []" in ended.outputs[0], ended


@pytest.mark.distributed
def test_several_nodes_without_a_secret_name_the_variable_to_set() -> None:
    """Without a store on MASTER_PORT (``init_method="file://..."``) the other node's ranks are not watched."""
    with two_nodes() as nodes:
        ended = run_ranks(
            "hang_ranks",
            [["arrives", "file"], ["arrives", "file"]],
            {"LIGHTNING_PATCHES_HANG_TIMEOUT": "2"},
            nodes=nodes,
        )
    assert ended.statuses == [0, 0], ended
    assert "1 of 2 ranks are watched for hangs. Not rank 1" in ended.outputs[0], ended
    assert "set LIGHTNING_PATCHES_HANG_SECRET to the same 16 characters or more on all nodes" in ended.outputs[0]
