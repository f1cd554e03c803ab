"""Show the state of every rank of a running job: its position, its stack, and if it waits, works or makes no progress.

Finds this user's watched jobs (started with LIGHTNING_PATCHES_HANG_TIMEOUT) whose rank zero runs on this node, and
shows the ranks of all their nodes. It does not attach to a process, and does not stop a rank.

With --json, one object (later versions may add keys):
  schema  1
  jobs    [{job {program, directory, pid, session}, verdict, seconds,
          ranks [{name, rank, where, kind, call, seconds, place, text, detail, ...}], gpus, text}]
  ok      the exit status is 0

exit status: 0 a job was found, 1 none.
"""

from __future__ import annotations

import argparse

from lightning_patches import system
from lightning_patches.cli import _output
from lightning_patches.cli._exit_status import NOT_APPLIED, OK, UsageError
from lightning_patches.ranks.hang import _settings, _viewer

HELP = "show what every rank of a watched job is doing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["show"], metavar="show", help="show the ranks of this node's jobs")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    missing = system.lacks(system.WATCH)
    if missing:
        raise UsageError(f"{_settings.needs(missing)}: no job is watched here.")
    try:
        jobs = _viewer.show()
    except OSError as error:
        raise UsageError(str(error)) from None
    status = OK if jobs else NOT_APPLIED
    if args.json:
        _output.write_json({"jobs": jobs, "ok": status == OK})
        return status
    for job in jobs:
        _output.write("\n".join(map(_output.printable, str(job["text"]).split("\n"))))
        _output.write()
    if not jobs:
        _output.write(
            _output.paragraph(
                "No watched job was found on this node. A job is watched if it was started with "
                "LIGHTNING_PATCHES_HANG_TIMEOUT. Run this command on the node of rank zero, in the account of the job."
            )
        )
    return status
