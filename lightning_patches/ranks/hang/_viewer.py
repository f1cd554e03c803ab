"""Query the hang watches of this node's jobs for the states of their ranks."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Optional

from lightning_patches.ranks import _node, _processes
from lightning_patches.ranks.hang import _wire


def show(seconds: float = 30.0) -> list[dict[str, Any]]:
    """Return the state of this user's watched jobs whose rank zero is on this node, see ``Report.as_dict``.

    Jobs of this terminal session come first, then the newest ones.

    Args:
        seconds: time for each job to answer.

    Raises:
        OSError: the directory of the jobs can't be read.
    """
    jobs = _node.directory("jobs")
    answers = [_ask(os.path.join(jobs, name), seconds) for name in sorted(os.listdir(jobs))]
    found = [answer for answer in answers if answer is not None]
    return sorted(found, key=_order)


def _order(answer: dict[str, Any]) -> tuple[bool, int]:
    job = answer["job"]
    return job["session"] != os.getsid(0), -(_processes.start_time(job["pid"]) or 0)


def _ask(job: str, seconds: float) -> Optional[dict[str, Any]]:
    """Query one job. Return ``None`` if it has ended or does not answer."""
    try:
        with open(os.path.join(job, "secret"), "rb") as file:
            secret = file.read()
    except OSError:
        return None
    connection = _wire.connect(os.path.join(job, "hub"), secret)
    if connection is None:
        return None
    connection.send({"t": "show"})
    text, deadline = "", time.monotonic() + seconds
    while connection.open and time.monotonic() < deadline:
        connection.wait(0.5)
        for message in connection.receive():
            if message["t"] == "shown":
                text += message["part"]
                if message["last"]:
                    connection.close()
                    answer: dict[str, Any] = json.loads(text)
                    return answer
    connection.close()
    return None
