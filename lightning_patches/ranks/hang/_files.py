"""Reports in files: written by whoever reports, in a directory that the user names, and read again later."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

VARIABLE = "LIGHTNING_PATCHES_HANG_DIR"
_PREFIX = "hang-"
_FIRST = "lightning_patches: "

_WRITER = """
import json, os, stat, sys
try:
    os.makedirs(sys.argv[1], exist_ok=True)
    for path, text in json.load(sys.stdin):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(path, flags, 0o644), "a", encoding="utf-8", errors="replace") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
                raise OSError(0, "is not a file of this user's own")
            file.write(text)
except OSError as error:
    print(error.strerror)
"""
_PATIENCE = 5.0


def place() -> str:
    """Where this process's reports go, without the suffixes; "" if the variable names no directory."""
    directory = os.environ.get(VARIABLE, "").strip()
    return os.path.join(directory, f"{_PREFIX}{socket.gethostname()}-{os.getpid()}") if directory else ""


def save(text: str, data: dict[str, Any]) -> str:
    """Append a report to this process's two files, as text and as a line of JSON, if the variable names a directory.

    Another process writes them: a dead network filesystem may never let go of it. No link is followed.

    Returns:
        Why they are not written; "" if they are, or without the variable.
    """
    path = place()
    if not path:
        return ""
    line = json.dumps({"time": time.time(), **data}) + "\n"
    files = [(f"{path}.txt", f"{_FIRST}{text}\n\n"), (f"{path}.jsonl", line)]
    command = [sys.executable, "-I", "-S", "-c", _WRITER, os.path.dirname(path)]
    try:
        writer = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            said, _ = writer.communicate(json.dumps(files).encode(), _PATIENCE)
        except subprocess.TimeoutExpired:
            writer.kill()  # and not waited for: in the kernel it may never end
            return f"it has not answered for {_PATIENCE:.0f} s"
    except OSError as error:
        return str(error.strerror)
    return said.decode("utf-8", "replace").strip()
