"""Tells who hangs and where, when ranks wait for each other for too long.

``LIGHTNING_PATCHES_HANG_TIMEOUT=300`` (seconds) watches every rank of a job that imports Lightning, ``=300:abort`` also
ends all ranks with status 124. :func:`watch` does the same from a program, Lightning or not.

How it works, and why so:

* One daemon thread per rank looks at the Python stacks of its own process, a few times per timeout. Nothing is hooked:
  no step, no collective and no import pays for it, and a hang is seen wherever it is, in Lightning, in DDP's backward
  or in code of the user. A rank *waits* if a thread of it stays in one call into ``torch.distributed`` (start-up,
  barrier, collective, a backward that synchronises gradients) while the sequence numbers of its process groups stand
  still, or if torch's flight recorder holds a collective that does not get done.
* Reports travel over a TCP connection of their own to a thread in rank zero. The process group and its store can't
  carry them: they are what hangs, they are not there before ``init_process_group``, and they never come to be if it is
  rank zero that does not arrive. The port is computed from what all ranks know from their launcher (``MASTER_PORT``,
  run id, job id), with alternatives where it is taken; ``LIGHTNING_PATCHES_HANG_PORT`` sets it for firewalls. Like
  torch's own store it trusts the network between the nodes; it carries text only, and listens on loopback alone if
  ``MASTER_ADDR`` is loopback.
* A rank that does not answer (stopped, dead, or in C code that holds the GIL) is looked at from outside, by a rank of
  the same host: its state in ``/proc``, the signal that killed it, and the stack that :mod:`faulthandler` writes, which
  needs no GIL.
* If rank zero can't be reached, one rank of each host reports what it knows.

A rank that is only slow (a long ``prepare_data`` on rank zero) looks the same from outside: the report says so, and
``abort`` is held back for as long as the stack of a missing rank keeps changing, or a rank that is only starting uses
the CPU.
"""

from __future__ import annotations

import os

from lightning_patches import _runtime
from lightning_patches.hang._watch import STATUS, Watch

__all__ = ["STATUS", "VARIABLE", "Watch", "start_from_environment", "watch"]

VARIABLE = "LIGHTNING_PATCHES_HANG_TIMEOUT"


def watch(timeout: float, abort: bool = False) -> Watch:
    """Watch this rank from now on. To be called in every rank, at the beginning of the program.

    Args:
        timeout: seconds that a rank may wait for others before it is reported.
        abort: then end all ranks, with status 124 (:data:`STATUS`).

    Returns:
        The watch, which runs until its ``stop()`` or the end of the process. A second call changes the settings of the
        one watch that a process has.

    Raises:
        ValueError: ``timeout`` is not a positive number.
    """
    if not 0 < timeout < float("inf"):
        raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
    return Watch.start(timeout, abort)


def start_from_environment() -> None:
    """Watch, if the environment asks for it. A value that can't be read is told once, and ends no program."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text or text == "0":
        return
    seconds, _, action = text.partition(":")
    try:
        timeout = float(seconds)
        if action not in ("", "abort"):
            raise ValueError
        watch(timeout, abort=action == "abort")
    except ValueError:
        _runtime.notice(f"{VARIABLE}={text} is not understood, and nothing is watched. Use `300` or `300:abort`.", True)
