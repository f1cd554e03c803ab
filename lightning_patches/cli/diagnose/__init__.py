"""Find the known bug of Lightning in a traceback or a log, and what to do about it.

  lightning-patches diagnose train.log rank1.log.xz  logs and tracebacks; - is standard input
  lightning-patches diagnose -- python train.py      run a command, and explain how it ends
  lightning-patches diagnose "epoch 0 is too short"  a description, since many bugs have no message
  lightning-patches diagnose hangs/                  reports of the hang watch
  lightning-patches diagnose train.py                names of Lightning 1.x in a script that 2.x does not have

Colors, rank prefixes, timestamps, progress bars, boxes drawn around text, paths, line numbers and device numbers are
ignored. The file may be compressed, JSON, a notebook or its export, HTML, a JUnit report or an escaped string. If a log
is large, only its beginning, its end and the lines around errors are read.

A bug is "found" if message, traceback and release agree. Otherwise it is "possible", and the answer names further
evidence. In a chain of errors, the first is the cause. Later errors are only listed.

Bugs are checked against the Lightning that is installed here, or against --requirement if the log is from another
machine. A bug that this release does not have is listed, but does not count as a match.

With --json, one object (later versions may add keys). The standard output of a command goes to standard error.
  schema   1
  file     the name of the first log, or "-"; files has all names
  verdict  the answer in a sentence; do: what to do; why, more: further lines
  written_by  {distribution, releases, by}: the Lightning that wrote the log, and how it was recognized
  matches  [{name, title, group, summary, symptom, file, line (number in the file), text (of that line), kind ("found",
           "possible", "follows" from another error, "ruled out"), cause (true for the main match), certain, ruled_out,
           verdicts [{distribution, version, verdict, reason}], would_tell, ground (how it was found), advice,
           fixed_in (null: never), patched (it has a patch), issues, pull_requests}], the cause first
  error    the first error of the log, if it is no known bug and the matches are only its consequences
  start    {file, line, text, ranks (that log that they join), world_size, words}, if the log ends before all ranks have
           joined, which is no known bug; else null
  hangs    [{file, verdict, do, count (of reports in the file), ranks}], the last report of each file of the hang watch
  out_of_sync  [{file, line, text, do}], if a GradientSyncError says that ranks train different models
  left_out  [{file, text}], a sentence about each part of a log that was not read
  closing  the same as do
  to_paste  the last line, for a thread about the same problem
  ok       the exit status is 0

exit status: 0 if there is a match, 1 if there is none, 2 if the command line or the file is wrong; after --, the exit
status of the command.
"""

from __future__ import annotations

import argparse
import os
from typing import Optional

from lightning_patches.cli import _output, _toggle
from lightning_patches.cli._exit_status import NOT_APPLIED, OK, UsageError
from lightning_patches.cli.audit.audited import audit_requirements
from lightning_patches.cli.diagnose import candidates, matches, program, read, render, start
from lightning_patches.cli.diagnose.answer import Answer
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.known import lookup

HELP = "find the known bug in a traceback or a log, and what to do about it"
PROGRAM_METAVAR = "-- COMMAND ..."
USAGE = f"""\
lightning-patches diagnose [--requirement SPEC] [--json] FILE|WORDS ...
       lightning-patches diagnose [--requirement SPEC] [--json] {PROGRAM_METAVAR}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = USAGE
    parser.add_argument(
        "file", nargs="*", metavar="FILE", help="logs, also compressed; - is standard input; or some words"
    )
    parser.add_argument(
        "--requirement",
        metavar="SPEC",
        help="the Lightning release of the log, such as lightning==2.2.5, if the log does not name it",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON; the standard output of a command goes to standard error"
    )


def run(args: argparse.Namespace) -> int:
    setting = _toggle.read_toggle()
    if setting.selection is None:
        raise UsageError(str(setting.error))
    if args.program and args.file:
        raise UsageError("diagnose takes files, or a command after --, not both.")
    if not args.program and not args.file:
        raise UsageError("diagnose needs a FILE, - for standard input, WORDS in quotes, or -- and a command.")
    required = _required(args.requirement, setting)
    key = " ".join(args.file)
    are_files = any(name == "-" or os.path.exists(name) for name in args.file)
    entries = () if are_files else lookup.find(key)
    if not entries and not are_files and lookup.number_in(key):
        raise UsageError(lookup.unknown(key))
    status: Optional[int] = None
    if entries:
        logs, found = [Log("", is_words=True)], candidates.by_name(entries, key)
    else:
        status, logs = program.run(args.program, args.json) if args.program else (None, read.logs(args.file))
        found = [one for log in logs for one in candidates.find(log)]
    checked = matches.ordered([matches.with_verdicts(one, setting, required) for one in found], logs)
    stalled = None
    if all(match.record.group == "event" or match.ruled_out for match in checked):
        # An event, such as the end of the job's time, also ends a program that hangs at its start.
        stalled = start.find([(log.name, log.lines) for log in logs])
        checked = checked if stalled is None else [match for match in checked if match.record.group != "event"]
    out_of_sync = matches.out_of_sync(logs, setting, required)
    answer = Answer(logs, checked, out_of_sync, entries, required or (), status, stalled)
    if args.json:
        _output.write_json(render.as_dict(answer))
    else:
        if status:
            render.write_end(args.program[0], status)
        render.write(answer)
    return (OK if answer.ok or entries else NOT_APPLIED) if status is None else status


def _required(requirement: Optional[str], setting: _toggle.Toggle) -> Optional[list[tuple[str, str]]]:
    """Return the releases that the command line names, without unknown ones; ``None`` if it names none."""
    if requirement is None or setting.selection is None:
        return None
    audited = audit_requirements([requirement], setting.selection)
    return [(one.distribution, one.version) for one in audited if one.version and one.known]
