"""Write report files to the directory that the user sets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

from lightning_patches.ranks import _node

VARIABLE = "LIGHTNING_PATCHES_HANG_DIR"
_PREFIX = "hang-"
_FIRST = "lightning_patches: "

_WRITER = """
import json, os, signal, stat, sys
signal.alarm(60)
try:
    os.makedirs(sys.argv[1], exist_ok=True)
    files = json.load(sys.stdin)
    reports = [entry for entry in os.scandir(sys.argv[1]) if entry.name.startswith("hang-")]
    there = sum(report.stat(follow_symlinks=False).st_size for report in reports)
    if there + sum(len(text) for _, text in files) > int(sys.argv[2]):
        raise OSError(0, f"the reports there have reached their limit of {int(sys.argv[2]) >> 20} MiB")
    for path, text in files:
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
MOST = 64 << 20
"""Maximum total size of the reports in a directory, in bytes. The default directory is in memory."""


def place() -> str:
    """Return the path of this process's report files, without the suffixes.

    Raises:
        OSError: the variable is not set, and there is no private directory for this user's files.
    """
    directory = os.environ.get(VARIABLE, "").strip() or _node.directory(_node.REPORTS)
    return os.path.join(directory, f"{_PREFIX}{socket.gethostname()}-{os.getpid()}")


def save(path: str, text: str, data: dict[str, Any]) -> str:
    """Append a report to this process's two files, as text and as a line of JSON. Follows no links.

    Another process writes the files, since a write to a dead network filesystem may never return. That process is not
    a child of this one, so that its work does not count as work of the program.

    Returns:
        The reason if the files could not be written, else "".
    """
    line = json.dumps({"time": time.time(), **data}) + "\n"
    files = [(f"{path}.txt", f"{_FIRST}{text}\n\n"), (f"{path}.jsonl", line)]
    python = [sys.executable, "-I", "-S", "-c", _WRITER, os.path.dirname(path), str(MOST)]
    command = ["/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh", *python]
    try:
        writer = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            output, _ = writer.communicate(json.dumps(files).encode(), _PATIENCE)
        except subprocess.TimeoutExpired:  # don't wait longer, since the writer may be stuck in the kernel
            return f"it has not answered for {_PATIENCE:.0f} s"
    except OSError as error:
        return str(error.strerror)
    return output.decode("utf-8", "replace").strip()
