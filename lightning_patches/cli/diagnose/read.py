"""What is looked through: logs, scripts, words, and what a program says on its standard error."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from typing import IO

from lightning_patches.cli import UsageError, _output
from lightning_patches.cli.diagnose import describe, find, hangs, log
from lightning_patches.cli.diagnose.find import Log
from lightning_patches.cli.diagnose.log import Text, prepare

_INSTALLED = re.compile(r"[/\\](?:(?:site|dist)-packages|lib[/\\]python[\d.]*)[/\\]|^<")


def logs(names: list[str]) -> list[Log]:
    """The files of these names, or what is said in words."""
    words = " ".join(names)
    is_prose = (" " in words.strip() or describe.CHINESE.search(words)) and not re.search(
        r"[/\\]|(?<!self)(?<!Module)\.(?:log|txt|out|err|gz)(?:\s|$)", words
    )
    if is_prose and not any(name == "-" or os.path.exists(name) for name in names):
        return [Log("", prepare(words))]
    return [_log(name) for name in names]


def _log(name: str) -> Log:
    try:
        if os.path.isdir(name):
            found = hangs.in_directory(name)
            if found:
                return Log(name, prepare(""), hangs=found)
        reports = hangs.Reports(name)
        text = _read(name, reports)
    except (OSError, EOFError) as error:
        meant = '. In words it takes more than one: `lightning-patches diagnose "it is stuck"`'
        hint = meant if isinstance(error, FileNotFoundError) and re.fullmatch(r"[^\W\d_]+", name) else ""
        raise UsageError(
            f"{_output.printable(name)} cannot be read: {getattr(error, 'strerror', None) or error}{hint}"
        ) from None
    hang = reports.finish()
    is_script = name.endswith(".py") and os.path.isfile(name)
    return Log(name, text, script(text), is_script, [hang] if hang is not None else [])


def _read(name: str, reports: hangs.Reports) -> Text:
    with log.opened(name) as stream:
        noted = log.Noted(stream, reports.feed)
        text, numbers, size = log.excerpt(noted, find.anchors(), _Progress(name))
        if size <= find.MAX_PROSE and not text and stream.seekable():
            stream.seek(0)
            return noted.tell(prepare(stream.read().decode("utf-8", "replace")))
    return noted.tell(prepare(text, numbers))


class _Progress:
    """How much of a large log was looked through, on a terminal."""

    def __init__(self, name: str) -> None:
        known = name != "-" and not name.endswith(".gz") and os.path.isfile(name)
        self.size = os.path.getsize(name) if known else 0
        self.name = _output.printable(name)

    def __call__(self, done: int) -> None:
        if sys.stderr.isatty() and (self.size or done) > 4 * log.BLOCK:
            of = f" of {self.size >> 20}" if self.size else ""
            end = "\r\x1b[K" if done >= self.size > 0 else "\r"
            print(f"{self.name}: {done >> 20}{of} MB{end}", end="", file=sys.stderr, flush=True)


def run_program(command: list[str], as_json: bool) -> tuple[int, list[Log]]:
    """Run a command, with what it says on standard error shown and kept. Its standard output is its own, or goes to
    our standard error where ours is for JSON."""
    with tempfile.TemporaryFile() as kept:
        try:
            process = subprocess.Popen(command, stdout=_stderr() if as_json else None, stderr=subprocess.PIPE)
        except OSError as error:
            raise UsageError(f"diagnose: {command[0]}: {error.strerror}") from None
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the program, and we explain what it does
        try:
            assert process.stderr is not None
            _tee(process.stderr, kept)
            status = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        kept.seek(0)
        name = shlex.join(command)
        reports = hangs.Reports(name)
        noted = log.Noted(kept, reports.feed)
        text, numbers, size = log.excerpt(noted, find.anchors(), lambda done: None)
    hang = reports.finish()
    status = 128 - status if status < 0 else status
    said = noted.tell(prepare(text, numbers))
    return status, [Log(name, said, as_typed(command), hangs=[hang] if hang is not None else [])]


def _stderr() -> int:
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError):
        return subprocess.DEVNULL


def _tee(source: IO[bytes], kept: IO[bytes]) -> None:
    while True:
        block = os.read(source.fileno(), 65536)
        if not block:
            return
        kept.write(block)
        try:
            sys.stderr.buffer.write(block)
            sys.stderr.buffer.flush()
        except OSError:
            pass  # nobody reads it any more


def as_typed(command: list[str]) -> str:
    """A command as `lightning-patches run` takes it, which has a Python of its own for a script or a module."""
    by_python = re.fullmatch(r"python[\d.]*", os.path.basename(command[0])) and len(command) > 1
    if by_python and (command[1] == "-m" or not command[1].startswith("-")):
        return shlex.join(command[1:])
    return f"-- {shlex.join(command)}"


def script(text: Text) -> str:
    """The script that raised the errors of a log: it is where their tracebacks come from."""
    for error in text.raised:
        for frame in error.frames:
            path = frame.path
            if frame.function == "<module>" and not _INSTALLED.search(path) and path.endswith(".py"):
                here = os.path.relpath(path)
                path = os.path.basename(path) if not os.path.isfile(path) else min(path, here, key=len)
                return shlex.quote(path)
    return find.SOME_PROGRAM
