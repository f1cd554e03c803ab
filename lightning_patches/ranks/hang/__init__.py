"""Tells who hangs and where, when ranks wait for each other for too long.

``LIGHTNING_PATCHES_HANG_TIMEOUT=300`` (seconds) watches every rank of a job that imports Lightning, ``=300:abort`` also
ends all ranks with status 124. :func:`watch_hangs` does the same from a program, Lightning or not.

How it works, and why so:

* One daemon thread per rank looks at the Python stacks of its own process, a few times per timeout. Nothing is hooked:
  no step, no collective and no import pays for it, and a hang is seen wherever it is, in Lightning, in DDP's backward
  or in code of the user. A rank *waits* if a thread of it stays in one call into ``torch.distributed`` (start-up,
  barrier, collective, a backward that synchronizes gradients) while the sequence numbers of its process groups stand
  still, or if torch's flight recorder holds a collective that does not get done.
* Reports travel over a connection of their own to a thread in rank zero. The process group and its store can't carry
  them: they are what hangs, they are not there before ``init_process_group``, and they never come to be if it is rank
  zero that does not arrive. Ranks of rank zero's node use a socket file in a directory of this user alone; nothing
  listens on a port. With several nodes rank zero listens on one, as soon as the other nodes' ranks can know the job's
  secret: from ``LIGHTNING_PATCHES_HANG_SECRET``, or from torch's store, if one of them has asked for it there. So does
  a rank of the same node that does not find the file, in a container with PIDs of its own: for it the port is on
  loopback. See :mod:`~lightning_patches.ranks.hang._wire` and :mod:`~lightning_patches.ranks.hang._secret`.
* A rank that does not answer (stopped, dead, or in C code that holds the GIL) is looked at from outside, by a rank of
  the same node: its state in ``/proc``, the signal that killed it, and the stack that :mod:`faulthandler` writes, which
  needs no GIL.
* If rank zero can't be reached, one rank of each node reports what it knows. That alone ends nothing, nor does a rank
  that can't be seen.
* A rank whose program has come to its end is still watched, without asking torch anything: a thread that is waited
  for, or a late ``atexit`` handler, is named. What runs after those (destructors in C++) is not seen.
* That the kernel's OOM killer ended a rank is read in the kernel's log. Where that may not be read, or in a container,
  it is inferred, and reported with "perhaps": from ``SIGKILL``, and such killings counted by the node since the watch
  began.

A rank that is only slow (a long ``prepare_data`` on rank zero) looks the same from outside: the report says so, and
``abort`` is held back for as long as a missing rank, or a process that it has started, is seen to work: its stack
changes, it uses the CPU, reads, writes or receives. A rank that was killed is not coming back: that is said at once,
and with ``abort`` the others are ended ten seconds later.
"""

from __future__ import annotations

import os

from lightning_patches import notices
from lightning_patches.ranks.hang import _settings
from lightning_patches.ranks.hang._settings import VARIABLE
from lightning_patches.ranks.hang._watch import STATUS, Watch

__all__ = ["STATUS", "VARIABLE", "Watch", "start_from_environment", "watch_hangs"]


def watch_hangs(timeout: float, abort: bool = False) -> Watch:
    """Watch this rank from now on. To be called in every rank, at the beginning of the program.

    Args:
        timeout: seconds that a rank may wait for others before it is reported.
        abort: then end all ranks, with status 124 (:data:`STATUS`).

    Returns:
        The watch, which runs until its ``stop()`` or the end of the process. A second call changes the settings of the
        one watch that a process has. Where the system lacks what it needs (it runs on Linux), that is said once, and
        the watch does nothing.

    Raises:
        ValueError: ``timeout`` is not a positive number.
    """
    try:
        understood = 0 < timeout < float("inf") and not isinstance(timeout, bool)
    except TypeError:
        understood = False
    if not understood:
        raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
    return Watch.start(timeout, abort)


def start_from_environment() -> None:
    """Watch, if the environment asks for it. A value that can't be read is reported once, and ends no program."""
    try:
        wanted = _settings.parse(os.environ.get(VARIABLE, ""))
    except ValueError as error:
        notices.notice(str(error), urgent=not notices.is_child())
        return
    if wanted is not None:
        for problem in _settings.problems():
            notices.notice(problem)
        try:
            watch_hangs(wanted[0], abort=wanted[1])
        except Exception as error:  # nobody wrote the call into the program
            notices.notice(
                f"ranks are not watched for hangs: {type(error).__name__}: {error}", urgent=not notices.is_child()
            )
