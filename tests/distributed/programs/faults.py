"""Actions of the ranks of hang_ranks.py: real work, which must not be ended, and hangs."""

import asyncio
import ctypes
import fcntl
import functools
import multiprocessing
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

SECONDS = 14
_SERVER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
peer, _ = listener.accept()
size, pause = int(sys.argv[1]), float(sys.argv[2])
end = time.time() + float(sys.argv[3])
while time.time() < end:
    peer.send(b"x" * size) if sys.argv[4] == "sends" else peer.recv(1 << 16)
    time.sleep(pause)
"""
_CLIENT = """
import socket, sys, time
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
end = time.time() + float(sys.argv[2])
while time.time() < end:
    peer.send(b"x" * 50_000)
    time.sleep(0.05)
"""


def serve(size, pause, does="sends", seconds=SECONDS):
    """Start a server that is not a child of this process, and return its port."""
    command = [sys.executable, "-c", _SERVER, str(size), str(pause), str(seconds), does]
    shell = subprocess.Popen(["sh", "-c", '"$@" &', "sh", *command], stdout=subprocess.PIPE, start_new_session=True)
    return int(shell.stdout.readline())


def receive(port):
    with socket.create_connection(("127.0.0.1", port)) as peer:
        while peer.recv(1 << 16):
            pass


def packets():
    receive(serve(1400, 1.0))


def thread_receives():
    port = serve(50_000, 0.05)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(receive, port).result()


def child_sends():
    subprocess.run([sys.executable, "-c", _CLIENT, str(serve(0, 0.0, "receives")), str(SECONDS)])


def saves():
    """Write a checkpoint to a slow disk: 64 KiB at a time, each flushed."""
    with open("checkpoint", "wb") as file:
        for _ in range(2 * SECONDS):
            file.write(os.urandom(1 << 16))
            file.flush()
            os.fsync(file.fileno())
            time.sleep(0.5)


def tokenizes():
    """Work in two processes, like ``datasets.map(num_proc=2)``."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(_burn, [SECONDS, SECONDS])


def _burn(seconds):
    end = time.time() + seconds
    while time.time() < end:
        sum(range(1000))


def listens():
    """Receive from the other rank in a thread, on a separate group, while the main thread computes."""
    import torch

    group = torch.distributed.new_group(backend="gloo")
    what = {"src": 1 - torch.distributed.get_rank(), "group": group}
    threading.Thread(target=torch.distributed.recv, args=(torch.zeros(1),), kwargs=what, daemon=True).start()
    end = time.time() + SECONDS
    while time.time() < end:
        torch.randn(200, 200) @ torch.randn(200, 200)
    torch.distributed.all_reduce(torch.ones(1))
    print("done", flush=True)
    time.sleep(0.5)
    os._exit(0)


def datagrams():
    """Use UDP, whose traffic is not visible."""
    here, there = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    here.bind(("127.0.0.1", 0))
    there.connect(here.getsockname())
    sender = [sys.executable, "-c", "import socket,sys,time\ns=socket.socket(fileno=int(sys.argv[1]))\n"]
    sender[2] += f"for _ in range({5 * SECONDS}): s.send(b'x'); time.sleep(.2)\ns.send(b'end')"
    subprocess.Popen([*sender, str(there.fileno())], pass_fds=[there.fileno()])
    while here.recv(10) != b"end":
        pass


def keep_alive():
    """Send only keep-alive messages on another tool's connection."""
    receive(serve(10, 1.0, seconds=100))


def file_lock():
    """Poll a file lock every 50 ms, like huggingface_hub and datasets, whose owner never releases it."""
    with open("lock", "w") as holder, open("lock") as file:
        fcntl.flock(holder, fcntl.LOCK_EX)
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.05)


def heartbeat():
    async def beat():
        while True:
            await asyncio.sleep(0.1)

    async def wait():
        task = asyncio.create_task(beat())
        await asyncio.get_running_loop().create_future()
        task.cancel()

    asyncio.run(wait())


def queue_timeout():
    waited_for = queue.Queue()
    while True:
        try:
            return waited_for.get(timeout=0.1)
        except queue.Empty:
            pass


def retries():
    """Retry a download from a server that is gone."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", 9), timeout=1)
        except OSError:
            time.sleep(1)


def fifo():
    os.mkfifo("fifo")
    open("fifo").close()


def two_locks():
    """Take two locks in two threads in opposite order."""
    one, other, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def thread():
        with other:
            both.wait()
            one.acquire()

    threading.Thread(target=thread, daemon=True).start()
    with one:
        both.wait()
        other.acquire()


def prompt():
    """Wait for input at a terminal without a user."""
    read, _ = os.pipe()
    os.dup2(read, 0)
    input("password? ")


def full_pipe():
    """Write to a program that no longer reads."""
    _, write = os.pipe()
    while True:
        os.write(write, b"x" * 4096)


def deep_stack():
    sys.setrecursionlimit(20_000)

    def call(depth):
        return time.sleep(100) if depth == 0 else call(depth - 1)

    call(900)


def many_threads():
    for _ in range(300):
        threading.Thread(target=time.sleep, args=(90,), daemon=True).start()
    time.sleep(100)


def own_handlers():
    """Hold the GIL in C code, with a user handler for every signal."""
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, *range(signal.SIGRTMIN + 1, signal.SIGRTMAX)):
        signal.signal(number, lambda *_: print("a handler of the user's", flush=True))
    time.sleep(2)
    ctypes.PyDLL(None).sleep(60)


def default_handlers():
    """Restore the default handlers, so that the watch's signal would kill this process."""
    for number in range(signal.SIGRTMIN + 1, signal.SIGRTMAX):
        signal.signal(number, signal.SIG_DFL)
    time.sleep(2)
    ctypes.PyDLL(None).sleep(60)


def regular_expression():
    """Run a regular expression that never ends and looks like work."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def hostile_name():
    """Run code in a file whose name has control characters and a line that looks like one of the watch."""
    name = "/x/\x1b]0;PWNED\x07\x1b[2J\x1b[31mrm -rf\x9b31m\u202e\r\nlightning_patches: rank 0 died.py"
    exec(compile("import time\ndef f():\n    time.sleep(100)\nf()", name, "exec"), {"__name__": "x"})


def _worker(does):
    import torch

    next(iter(torch.utils.data.DataLoader(_Data(does), num_workers=1)))


class _Data:
    def __init__(self, does):
        self.does = does

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.does()
        return index


def worker_deadlock():
    """Fork a worker while another thread holds a lock."""
    lock = threading.Lock()
    threading.Thread(target=lambda: lock.acquire() and time.sleep(1000), daemon=True).start()
    time.sleep(0.2)
    _worker(lock.acquire)


def _signals_itself(number):
    os.kill(os.getpid(), number)


def worker_killed():
    _worker(functools.partial(_signals_itself, signal.SIGKILL))


def worker_stopped():
    _worker(functools.partial(_signals_itself, signal.SIGSTOP))


def dies_with_a_helper():
    """Kill this rank, whose forked helper keeps its sockets open."""
    _wait_until_known()
    library = ctypes.PyDLL(None)
    if library.fork() == 0:
        library.sleep(100)
        library._exit(0)
    _signals_itself(signal.SIGKILL)


def replaces_itself():
    _wait_until_known()
    os.execv("/bin/sleep", ["sleep", "100"])


def segmentation_fault():
    _wait_until_known()
    ctypes.string_at(0)


def is_asked_to_end():
    _wait_until_known()
    _signals_itself(signal.SIGTERM)


def exits_at_once():
    _wait_until_known()
    os._exit(0)


def exits_at_once_with_7():
    _wait_until_known()
    os._exit(7)


def joins_a_process():
    """Join a multiprocessing child at exit that never ends."""
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(100,)).start()


def _wait_until_known():
    from __main__ import wait_until_known

    wait_until_known()


def skips():
    """Catch an error and continue with the next collective."""
    import torch

    try:
        raise RuntimeError("a bad batch")
    except RuntimeError:
        torch.distributed.destroy_process_group()
        time.sleep(100)


def broadcasts():
    import torch

    torch.distributed.broadcast(torch.ones(3), 1)


def reduces_another_shape():
    import torch

    torch.distributed.all_reduce(torch.ones(1000))


def waits_alone():
    import torch

    torch.distributed.barrier()
