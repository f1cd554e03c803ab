"""Read a traceback or a log, and tell which known bug of Lightning it shows and what to do about it.

  lightning-patches diagnose train.log rank1.log.xz  logs and tracebacks; - is standard input
  lightning-patches diagnose -- python train.py      run it, and explain how it ends
  lightning-patches diagnose "epoch 0 is too short"  in words: many bugs have no message
  lightning-patches diagnose hangs/                  reports of the hang watch
  lightning-patches diagnose train.py                what a script for 1.x uses that 2.x does not have

Colours, rank prefixes, timestamps, progress bars, boxes drawn around text, paths, line numbers and device numbers make
no difference. Neither does the format of the file: compressed, JSON, a notebook or its export, HTML, a JUnit report, a
recording of a terminal, a table, an escaped string. Of a large log the beginning, the end and the lines around errors
are read.

A bug is found when message, traceback and release agree; otherwise it is possible, and what would tell for sure is
shown. Of a chain of errors the first is the cause; those that followed from it are only named.

What is found is checked against the Lightning that is installed here, or against --requirement where the log comes from
another machine. A bug that this release does not have is named, and does not count as a match.

With --json, one object; a command's own standard output then goes to standard error. Keys are only ever added:
  schema   1
  file     the name, or "-"; files has all of them
  verdict  what it is, in a sentence; do: what to do; why and more: lines on it
  written_by  {distribution, releases, by}: the Lightning that wrote the log, and what tells it
  matches  [{name, title, group, summary, symptom, file, line (number in the file), text (of that line), kind ("found",
           "possible", "follows" from another error, "ruled out"), cause (it is the one), certain, ruled_out,
           verdicts [{distribution, version, verdict, reason}], would_tell, ground (what it was found by), advice,
           fixed_in (null: never), patched (there is a patch), issues, pull_requests}], the cause first
  error    the first error of the log, if that is no known bug and what is found followed from it
  start    {file, line, text, ranks (that say that they join), world_size, words}, where the log ends before all ranks
           have found each other; no known bug, and so no match; else null
  hangs    [{file, verdict, do, count (of reports in the file), ranks}], the last report of each file of the hang watch
  out_of_sync  [{file, line, text, do}], where a GradientSyncError says that ranks train different models
  left_out  [{file, text}], a sentence about each part of a log that was not read
  closing  what to do
  to_paste  the last line, for a thread in which others ask the same
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
from lightning_patches.cli.diagnose import answer, candidates, program, read, render, sync
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
        help="the Lightning that wrote it, such as lightning==2.2.5, where the log itself does not tell",
    )
    parser.add_argument(
        "--json", action="store_true", help="as JSON; what a command writes to standard output goes to standard error"
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
    asked = " ".join(args.file)
    are_files = any(name == "-" or os.path.exists(name) for name in args.file)
    named = () if are_files else lookup.find(asked)
    if not named and not are_files and lookup.number_in(asked):
        raise UsageError(lookup.unknown(asked))
    if named:
        ended, logs = None, [candidates.Log("", is_words=True)]
        matches = candidates.by_name(named, asked)
    else:
        ended, logs = program.run(args.program, args.json) if args.program else (None, read.logs(args.file))
        matches = [match for one in logs for match in candidates.find(one)]
    out_of_sync = sync.find(logs)
    candidates.judge([*matches, *(match for one in out_of_sync for match in one.suspects)], setting, required)
    found = candidates.ordered(matches, logs)
    said = answer.answer(found, out_of_sync, logs, ended, [f"{name} {version}" for name, version in required or ()])
    answer.of_numbers(said, named)
    if args.json:
        _output.write_json(render.as_dict(said))
    else:
        if ended:
            render.write_end(args.program[0], ended)
        render.write(said)
    return (OK if said.ok or named else NOT_APPLIED) if ended is None else ended


def _required(requirement: Optional[str], setting: _toggle.Toggle) -> Optional[list[tuple[str, str]]]:
    """The release that the command line names, nothing for one that is not known here; ``None`` if it names none."""
    if requirement is None or setting.selection is None:
        return None
    audited = audit_requirements([requirement], setting.selection)
    return [(one.distribution, one.version) for one in audited if one.version and one.known]
