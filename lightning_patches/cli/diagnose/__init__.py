"""Find the known bug of Lightning that a traceback or a log shows, and what to do about it.

  lightning-patches diagnose train.log rank1.log.xz  logs and tracebacks; - is standard input
  lightning-patches diagnose -- python train.py      run it, and explain how it ends
  lightning-patches diagnose "epoch 0 is too short"  in words: many bugs have no message
  lightning-patches diagnose hangs/                  reports of the hang watch
  lightning-patches diagnose train.py                names of 1.x in a script that 2.x does not have

Colors, rank prefixes, timestamps, progress bars, boxes drawn around text, paths, line numbers and device numbers make
no difference. The file may be compressed, JSON, a notebook or its export, HTML, a JUnit report, a recording of a
terminal, a table or an escaped string. Of a large log the beginning, the end and the lines around errors are read.

A bug is "found" if message, traceback and release agree. Otherwise it is "possible", and the answer says how to make
sure. Of a chain of errors the first is the cause; errors that followed from it are only named.

Bugs are checked against the Lightning that is installed here, or against --requirement if the log is from another
machine. A bug that this release does not have is named, and does not count as a match.

With --json, one object; a command's own standard output then goes to standard error. Keys are only ever added:
  schema   1
  file     the name, or "-"; files has all of them
  verdict  the answer in a sentence; do: what to do; why and more: lines on it
  written_by  {distribution, releases, by}: the Lightning that wrote the log, and how it was recognized
  matches  [{name, title, group, summary, symptom, file, line (number in the file), text (of that line), kind ("found",
           "possible", "follows" from another error, "ruled out"), cause (it is the one), certain, ruled_out,
           verdicts [{distribution, version, verdict, reason}], would_tell, ground (how it was found), advice,
           fixed_in (null: never), patched (it has a patch), issues, pull_requests}], the cause first
  error    the first error of the log, if it is no known bug and the matches followed from it
  start    {file, line, text, ranks (that log that they join), world_size, words}, if the log ends before all ranks
           have found each other; no known bug, and so no match; else null
  hangs    [{file, verdict, do, count (of reports in the file), ranks}], the last report of each file of the hang watch
  out_of_sync  [{file, line, text, do}], if a GradientSyncError says that ranks train different models
  left_out  [{file, text}], a sentence about each part of a log that was not read
  closing  what to do
  to_paste  the last line, for a thread about the same problem
  ok       the exit status is 0

exit status: 0 something matches, 1 nothing does, 2 the command line or the file is wrong; with -- the program's own.
"""

from __future__ import annotations

import argparse
import os
from typing import Optional

from lightning_patches.cli import _output, _toggle
from lightning_patches.cli._exit_status import NOT_APPLIED, OK, UsageError
from lightning_patches.cli.audit.audited import audit_requirements
from lightning_patches.cli.diagnose import candidates, matches, program, read, render, sync
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
    judged = matches.ordered([matches.judged(one, setting, required) for one in found], logs)
    out_of_sync = sync.find(logs, setting, required)
    answer = Answer(logs, judged, out_of_sync, entries, required or (), status)
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
