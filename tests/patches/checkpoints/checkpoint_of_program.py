"""A program with custom code for writing and reading checkpoints. The result must be the same as on stock.

CASE "encrypted": an fsspec class for local files that encrypts. CASE "save": torch.save is wrapped, and reads the
buffer. CASE "load": torch.load is wrapped, with Lightning's two arguments. CASE "watched": a thread notes each file
that appears in the directory, and a process is killed while it saves. CASE "edited": the checkpoint is edited, with
warnings as errors. CASE "environment": the program empties os.environ. CASE "allowed": it allows a class in
torch, and has an fsspec class that records opened files. CASE "linked": a file has a second name when the next
one replaces it. CASE "counting": a path class that counts how often it is resolved.
"""

import argparse
import io
import os
import signal
import threading
import time
import warnings
from pathlib import Path

import _scenario as scenario
import fsspec
import torch
from fsspec.implementations.local import LocalFileSystem

OBJECT = argparse.Namespace(width=3)
loads, saves = torch.load, torch.save


class Encrypted(LocalFileSystem):
    def open(self, path, mode="rb", **options):
        file = super().open(path, mode, **options)
        if "w" not in mode:
            return io.BytesIO(bytes(byte ^ 0x5A for byte in file.read()))
        write = file.write
        file.write = lambda data: write(bytes(byte ^ 0x5A for byte in bytes(data)))
        return file


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return type(error).__name__


def encrypted(cloud_io):
    fsspec.register_implementation("file", Encrypted, clobber=True)
    for name, content in (("plain", {"a": 1}), ("object", {"a": OBJECT})):
        path = Path(f"{name}.ckpt").absolute()
        cloud_io._atomic_save(content, path)
        scenario.observe(**{name: path.read_bytes()[:2].hex()})
    scenario.observe(read=attempt(cloud_io._load, Path("plain.ckpt").absolute()))


def save(cloud_io):
    kinds = []

    def wrapped(content, file, *args, **kwargs):
        saves(content, file, *args, **kwargs)
        kinds.append((type(file).__name__, file.getbuffer().nbytes == file.tell(), len(args), sorted(kwargs)))

    torch.save = wrapped
    for content in ({"a": 1}, {"a": OBJECT}):
        cloud_io._atomic_save(content, os.path.abspath("a.ckpt"))
    scenario.observe(kinds=kinds)


def load(cloud_io):
    def wrapped(f, map_location=None, weights_only=None):
        asked.append(weights_only)
        return loads(f, map_location=map_location, weights_only=False)

    asked = []
    cloud_io._atomic_save({"a": OBJECT}, os.path.abspath("a.ckpt"))
    torch.load = wrapped
    scenario.observe(read=repr(cloud_io._load(os.path.abspath("a.ckpt"))), asked=asked)


def watched(cloud_io):
    directory, seen, over = Path("saved").absolute(), set(), threading.Event()
    directory.mkdir()

    def watch():
        while not over.is_set():
            seen.update(os.path.splitext(name)[1] for name in os.listdir(directory))
            time.sleep(0.001)

    thread = threading.Thread(target=watch)
    thread.start()
    for number in range(3):
        cloud_io._atomic_save({"a": OBJECT, "w": torch.zeros(1_000_000)}, directory / f"{number}.ckpt")
    over.set()
    thread.join()
    child = os.fork()
    if child == 0:

        def killed(*args, **kwargs):
            saves(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)

        torch.save = killed
        cloud_io._atomic_save({"a": OBJECT}, directory / "3.ckpt")
    os.waitpid(child, 0)
    scenario.observe(seen=sorted(seen), left=sorted(os.listdir(directory)))


def edited(cloud_io):
    path = os.path.abspath("a.ckpt")
    cloud_io._atomic_save({"a": OBJECT, "b": 1}, path)
    for content in ({"b": 1}, {"b": 2}):
        saves(content, path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scenario.observe(**{str(content): cloud_io._load(path)})


def environment(cloud_io):
    os.environ.clear()
    cloud_io._atomic_save({"a": 1}, os.path.abspath("a.ckpt"))
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    cloud_io._atomic_save({"a": OBJECT}, os.path.abspath("b.ckpt"))
    read = [attempt(cloud_io._load, os.path.abspath(name)) for name in ("a.ckpt", "none.ckpt")]
    torch.distributed.destroy_process_group()
    os.environ["SCENARIO_OUT"] = os.getcwd()
    scenario.observe(read=read)


class Newer(argparse.Namespace):
    pass


def allowed(cloud_io):
    opened = []

    class Noting(LocalFileSystem):
        def open(self, path, mode="rb", **options):
            opened.append(mode)
            return super().open(path, mode, **options)

    fsspec.register_implementation("file", Noting, clobber=True)
    torch.serialization.add_safe_globals([(Newer, "argparse.Namespace")])
    path = os.path.abspath("a.ckpt")
    cloud_io._atomic_save({"a": OBJECT}, path)
    scenario.observe(read=type(cloud_io._load(path)["a"]).__name__)
    saves({"a": argparse.Namespace(edited=True)}, path)
    scenario.observe(read_again=type(cloud_io._load(path)["a"]).__name__, opened=opened)


def linked(cloud_io):
    for number, path in enumerate([os.path.abspath("a.ckpt")] * 2):
        cloud_io._atomic_save({"a": OBJECT, "number": number}, path)
        if number == 0:
            os.link(path, "b.ckpt")
    scenario.observe(kept=loads("b.ckpt", weights_only=False)["number"])


class Counting(type(Path())):
    asked = []

    def __fspath__(self):
        self.asked.append("fspath")
        return super().__fspath__()

    def __str__(self):
        self.asked.append("str")
        return super().__str__()


def counting(cloud_io):
    cloud_io._atomic_save({"a": OBJECT}, Counting(os.path.abspath("a.ckpt")))
    scenario.observe(asked=list(Counting.asked))


if __name__ == "__main__":
    globals()[scenario.CASE](scenario.fabric("utilities.cloud_io"))
