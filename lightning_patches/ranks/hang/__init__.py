"""Report which rank hangs, and where, if ranks wait too long for each other.

``LIGHTNING_PATCHES_HANG_TIMEOUT=300`` (seconds) watches every rank of a job that imports Lightning. ``=300:abort`` also
ends all ranks with status 124. :func:`watch_hangs` does the same in any program.

How it works:

* One daemon thread per rank reads the Python stacks of its process a few times per timeout. It needs no hooks, so it
  does not slow down steps, collectives or imports, and it detects a hang anywhere: in Lightning, in DDP's backward or
  in the user's code. A rank *waits* if one of its threads stays in one call into ``torch.distributed`` (start-up,
  barrier, collective, a backward that synchronizes gradients) while the sequence numbers of its process groups don't
  change, or if torch's flight recorder has a collective that does not complete.
* Reports use a separate connection to a thread in rank zero. They can't use the process group and its store, which
  don't exist before ``init_process_group``, and may be the part that hangs. Ranks of rank zero's node use a socket file
  in a private directory of the user, and no port. With several nodes, rank zero listens on a port as soon as the ranks
  of other nodes can know the job's secret: from ``LIGHTNING_PATCHES_HANG_SECRET``, or from torch's store after one of
  them has requested it. A rank of the same node in a container with its own PIDs does not find the socket file. For
  such a rank, rank zero listens on a loopback port. See :mod:`~lightning_patches.ranks.hang._wire` and
  :mod:`~lightning_patches.ranks.hang._secret`.
* If a rank does not answer (stopped, dead, or in C code that holds the GIL), another rank of its node examines it: its
  state in ``/proc``, the signal that killed it, and the stack from :mod:`faulthandler`, which does not need the GIL.
* If rank zero is unreachable, one rank of each node writes a report. The watch does not end a job because rank zero is
  unreachable, or because a rank can't be examined.
* After a rank's program has ended, the watch continues without calls into torch. It reports a thread that the
  interpreter waits for, or a late ``atexit`` handler. It can't see code that runs later (C++ destructors).
* The kernel's log shows if the OOM killer ended a rank. If the log is not readable, and in a container, the report
  states only that the OOM killer may be the cause, by ``SIGKILL`` and the node's number of OOM kills.

A slow rank (a long ``prepare_data`` on rank zero) looks like one that hangs, and the report mentions this. ``abort``
does not end a job while a missing rank, or a process that it started, works: its stack changes, or it uses the CPU,
reads, writes or receives. A killed rank is reported immediately. With ``abort``, the other ranks are ended ten seconds
later.
"""

from __future__ import annotations

import os

from lightning_patches import notices
from lightning_patches.ranks.hang import _settings
from lightning_patches.ranks.hang._report import STATUS
from lightning_patches.ranks.hang._settings import VARIABLE
from lightning_patches.ranks.hang._watch import Watch

__all__ = ["STATUS", "VARIABLE", "Watch", "start_from_environment", "watch_hangs"]


def watch_hangs(timeout: float, abort: bool = False) -> Watch:
    """Watch this rank from now on. Call it in every rank, at the beginning of the program.

    Args:
        timeout: seconds that a rank may wait for others before the watch reports it.
        abort: end all ranks after the report, with status 124 (:data:`STATUS`).

    Returns:
        The watch, which runs until its ``stop()`` or the end of the process. A process has one watch, and a second call
        changes its settings. If the system lacks a feature (other systems than Linux), the watch warns once and does
        nothing.

    Raises:
        ValueError: ``timeout`` is not a positive number.
    """
    try:
        is_valid = 0 < timeout < float("inf") and not isinstance(timeout, bool)
    except TypeError:
        is_valid = False
    if not is_valid:
        raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
    return Watch.start(timeout, abort)


def start_from_environment() -> None:
    """Start the watch if ``LIGHTNING_PATCHES_HANG_TIMEOUT`` is set. An invalid value causes one warning."""
    try:
        setting = _settings.parse(os.environ.get(VARIABLE, ""))
    except ValueError as error:
        notices.notice(str(error), urgent=not notices.is_child())
        return
    if setting is not None:
        for problem in _settings.problems():
            notices.notice(problem)
        try:
            watch_hangs(setting[0], abort=setting[1])
        except Exception as error:  # the program did not call this, so it must not raise
            notices.notice(
                f"ranks are not watched for hangs: {type(error).__name__}: {error}", urgent=not notices.is_child()
            )
