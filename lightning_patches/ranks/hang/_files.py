"""Reports in files: written by whoever reports, in a directory that the user names, and read again later."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

VARIABLE = "LIGHTNING_PATCHES_HANG_DIR"
_PREFIX = "hang-"
_FIRST = "lightning_patches: "
_FIRST_OF_DATA = b'{"time": '
_MOST_BYTES = 64 << 20


def save(text: str, data: dict[str, Any]) -> str:
    """Append a report to this process's two files, as text and as a line of JSON, if the variable names a directory.

    Returns:
        A line on where it is, or why it is not; "" without the variable.
    """
    directory = os.environ.get(VARIABLE, "").strip()
    if not directory:
        return ""
    path = os.path.join(directory, f"{_PREFIX}{socket.gethostname()}-{os.getpid()}")
    try:
        os.makedirs(directory, exist_ok=True)
        with open(f"{path}.txt", "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{_FIRST}{text}\n\n")
        with open(f"{path}.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time.time(), **data}) + "\n")
    except OSError as error:
        return f"\n  {VARIABLE}={directory}: {error.strerror}."
    return f"\n  With all stacks in {path}.jsonl."


def load(path: str) -> list[dict[str, Any]]:
    """The reports in a file that :func:`save` has written, or in a directory of such files, the oldest first.

    Each has at least ``file``, ``verdict`` and ``ranks``; none is returned for what was written by somebody else, such
    as the log of a program, which may begin with a line of ours as well.

    Raises:
        OSError: it can't be read.
    """
    if os.path.isdir(path):
        names = sorted(n for n in os.listdir(path) if n.startswith(_PREFIX) and n.endswith(".jsonl"))
        found = [report for name in names for report in load(os.path.join(path, name))]
        return sorted(found, key=lambda report: float(report.get("time", 0.0)))
    with open(path, "rb") as file:
        if not file.read(len(_FIRST)).startswith((_FIRST.encode(), _FIRST_OF_DATA)):
            return []
        file.seek(0)
        lines = file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
    if lines and lines[0].startswith(_FIRST):
        if not (os.path.basename(path).startswith(_PREFIX) and path.endswith(".txt")):
            return []
        firsts = [line[len(_FIRST) :] for line in lines if line.startswith(_FIRST)]
        return [{"file": path, "verdict": first.rstrip("."), "ranks": []} for first in firsts]
    reports = []
    for line in lines:
        try:
            report = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the last one, of a full disk
        if isinstance(report, dict) and isinstance(report.get("verdict"), str):
            ranks = [rank for rank in report.get("ranks") or [] if isinstance(rank, dict)]
            reports.append({**report, "file": path, "ranks": ranks})
    return reports
