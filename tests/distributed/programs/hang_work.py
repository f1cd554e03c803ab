"""Two ranks, of which the second does something for a while before it comes to the collective: hang_work.py CASE.

What works has to be let go on; what only asks again and again, and gets nowhere, has not.
"""

import asyncio
import fcntl
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

import lightning_patches
from lightning_patches.ranks import hang

SECONDS = 14
SERVER = """
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
CLIENT = """
import socket, sys, time
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
end = time.time() + float(sys.argv[2])
while time.time() < end:
    peer.send(b"x" * 50_000)
    time.sleep(0.05)
"""


def serve(size, pause, does):
    """A server that is nobody's child; the port that it listens on."""
    command = [sys.executable, "-c", SERVER, str(size), str(pause), str(SECONDS), does]
    shell = subprocess.Popen(["sh", "-c", '"$@" &', "sh", *command], stdout=subprocess.PIPE, start_new_session=True)
    return int(shell.stdout.readline())


def receive(port):
    with socket.create_connection(("127.0.0.1", port)) as peer:
        while peer.recv(1 << 16):
            pass


def packets():
    receive(serve(1400, 1.0, "sends"))


def thread_receives():
    port = serve(50_000, 0.05, "sends")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(receive, port).result()


def child_sends():
    subprocess.run([sys.executable, "-c", CLIENT, str(serve(0, 0.0, "receives")), str(SECONDS)])


def datagrams():
    """Of UDP nothing can be told."""
    here, there = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    here.bind(("127.0.0.1", 0))
    there.connect(here.getsockname())
    sender = [sys.executable, "-c", "import socket,sys,time\ns=socket.socket(fileno=int(sys.argv[1]))\n"]
    sender[2] += f"for _ in range({5 * SECONDS}): s.send(b'x'); time.sleep(.2)\ns.send(b'end')"
    subprocess.Popen([*sender, str(there.fileno())], pass_fds=[there.fileno()])
    while here.recv(10) != b"end":
        pass


def file_lock():
    """Held by somebody who has gone; asked for every 50 ms, as huggingface_hub and datasets do."""
    with tempfile.NamedTemporaryFile() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with open(holder.name) as file:
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


def listen():
    """A thread of each rank listens to the other one, on a group of its own."""
    group = dist.new_group(backend="gloo")
    other = 1 - dist.get_rank()
    threading.Thread(
        target=dist.recv, args=(torch.zeros(1),), kwargs={"src": other, "group": group}, daemon=True
    ).start()


if __name__ == "__main__":
    case = sys.argv[1]
    assert lightning_patches
    hang.start_from_environment()
    dist.init_process_group("gloo")
    if case == "listener":
        listen()
        end = time.time() + SECONDS
        while time.time() < end:
            torch.randn(200, 200) @ torch.randn(200, 200)
    elif dist.get_rank() == 1:
        globals()[case]()
    dist.all_reduce(torch.ones(1))
    print("done", flush=True)
    os._exit(0)
