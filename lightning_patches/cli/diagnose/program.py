"""Run a program, show its standard error, and read it as a log."""

from __future__ import annotations

import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, Optional

from lightning_patches.cli import _output
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.diagnose import facts, read, streams
from lightning_patches.cli.diagnose.log import Log

QUIET, MOST = 0.3, 2.0
"""Seconds to wait for more output after the program's end: since the last output, and in total. Its child processes may
keep its standard error open."""


def run(command: list[str], as_json: bool) -> tuple[int, list[Log]]:
    """Run a command and read its standard error. The command handles Ctrl-C.

    Args:
        command: the command.
        as_json: redirect the command's standard output to our standard error.

    Returns:
        The exit status (128 + N after signal N), and the log.

    Raises:
        UsageError: the command can't be started.
    """
    with _interrupts_ignored():
        try:
            process = subprocess.Popen(command, stdout=_stderr() if as_json else None, stderr=subprocess.PIPE)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{_output.printable(command[0])} cannot be started: {reason}") from None
        log = read.from_stream(shlex.join(command), streams.Stream(_shown(process)))
        status = process.wait()
    found = replace(log.facts, start=facts.Start("script", as_typed(command)))
    return 128 - status if status < 0 else status, [replace(log, is_words=False, facts=found)]


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    if before != signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: None)  # a function, since the command would inherit SIG_IGN
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stderr() -> int:
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError):
        return subprocess.DEVNULL


def _shown(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Write a program's standard error to ours and yield it, until the program has ended."""
    assert process.stderr is not None
    blocks: queue.Queue[bytes] = queue.Queue(maxsize=16)
    threading.Thread(target=_copy, args=(process.stderr, blocks), daemon=True).start()
    ended: Optional[float] = None
    last = 0.0
    while True:
        now = time.monotonic()
        if ended is None and process.poll() is not None:
            ended = last = now
        if ended is not None and (now - last > QUIET or now - ended > MOST):
            return
        try:
            block = blocks.get(timeout=0.1)
        except queue.Empty:
            continue
        if not block:
            return
        last = time.monotonic()
        yield block


def _copy(source: IO[bytes], blocks: queue.Queue[bytes]) -> None:
    while True:
        block = os.read(source.fileno(), 65536)
        try:
            sys.stderr.buffer.write(block)
            sys.stderr.buffer.flush()
        except (OSError, ValueError, AttributeError):
            pass  # our standard error is closed
        blocks.put(block)
        if not block:
            return


def as_typed(command: list[str]) -> str:
    """Return the arguments with which `lightning-patches run` runs a command. A script or module needs no `python`."""
    by_python = re.fullmatch(r"python[\d.]*", os.path.basename(command[0])) and len(command) > 1
    if by_python and (command[1] == "-m" or not command[1].startswith("-")):
        return shlex.join(command[1:])
    return f"-- {shlex.join(command)}"
