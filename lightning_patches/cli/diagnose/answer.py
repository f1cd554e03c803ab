"""Choose the subject of the answer: a match, a report of the hang watch, an error, or the end of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Optional, Union

from lightning_patches.cli import _output
from lightning_patches.cli.diagnose import describe, facts
from lightning_patches.cli.diagnose.facts import Facts
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.log import Log
from lightning_patches.cli.diagnose.matches import Match, OutOfSync, unknown
from lightning_patches.cli.diagnose.start import StalledStart
from lightning_patches.cli.diagnose.tracebacks import Raised
from lightning_patches.engine import distributions
from lightning_patches.known.coverage import Fix
from lightning_patches.known.installed import find_installed
from lightning_patches.known.lookup import OpenReport

Subject = Union[Hang, Match, OutOfSync, StalledStart, Raised, Fix, OpenReport, None]


class Compromised(NamedTuple):
    """A release that runs hostile code.

    Args:
        version: its version.
        line: number of the line in the log that names the release; 0 if the log does not name it.
        is_installed: True if the release is installed here.
    """

    version: str
    line: int = 0
    is_installed: bool = False


class Text(NamedTuple):
    """The sentences of an answer.

    Args:
        verdict: the first line.
        do: what to do.
        why: lines that explain the verdict.
        more: other lines.
    """

    verdict: str
    do: str
    why: Sequence[str] = ()
    more: Sequence[str] = ()


@dataclass(frozen=True)
class Answer:
    """The data from which the sentences of the answer are made.

    Args:
        logs: the logs.
        matches: the records that may explain the logs, the cause first.
        out_of_sync: errors of the gradient check.
        entries: entries with the name or number on the command line.
        required: the releases that the command line names.
        status: exit status of the command that was run; ``None`` without a command.
        stalled: the start at which the logs end, or ``None``.
    """

    logs: Sequence[Log]
    matches: Sequence[Match]
    out_of_sync: Sequence[OutOfSync]
    entries: Sequence[object]
    required: Sequence[tuple[str, str]]
    status: Optional[int]
    stalled: Optional[StalledStart]

    @property
    def hangs(self) -> list[Hang]:
        return [hang for log in self.logs for hang in log.hangs]

    @property
    def facts(self) -> Facts:
        return next((log.facts for log in self.logs if log.facts.releases), self.logs[0].facts)

    @property
    def main(self) -> Optional[Match]:
        """The most likely match."""
        likely = (match for match in self.matches if match.cause or (match.kind == "possible" and not match.is_before))
        return next(likely, None)

    @property
    def unknown(self) -> Optional[Raised]:
        """The first error, if it is no known bug and all matches are bugs that hide an earlier error."""
        return unknown(self.matches)

    @property
    def ending(self) -> Optional[Raised]:
        """The error that ended the program."""
        return next((log.ending for log in self.logs if log.ending is not None), None)

    @property
    def is_about_hang(self) -> bool:
        """True if the user describes a hang."""
        return any(log.is_words and describe.is_about_hang(log.text) for log in self.logs)

    @property
    def ok(self) -> bool:
        """True if something was found."""
        is_match = any(not match.ruled_out for match in self.matches)
        return bool(self.hangs or self.out_of_sync or self.compromised or is_match)

    def place(self, file: str, line: int) -> str:
        """Return the beginning of a sentence about a line: its number, and its file if there are several logs."""
        return f"{_output.printable(file)}, line {line}: " if len(self.logs) > 1 and file else f"Line {line}: "

    @cached_property
    def subject(self) -> Subject:
        """The hang, match, error or start that is the subject of the verdict; ``None`` if there is nothing to
        report."""
        number = next((one for one in self.entries if isinstance(one, (Fix, OpenReport))), None)
        if number is not None:
            return number
        if self.hangs and not any(match.cause for match in self.matches):
            return self.hangs[0]
        if self.unknown is not None:
            return self.unknown
        if self.stalled is not None and not self.hangs and not self.out_of_sync:
            return self.stalled
        if self.main is not None and (self.main.cause or not self.out_of_sync):
            return self.main
        if self.out_of_sync:
            return self.out_of_sync[0]
        return self.ending if self.ending is not None and (self.ending.words or self.ending.frames) else None

    @cached_property
    def compromised(self) -> Optional[Compromised]:
        """A release that runs hostile code, in a log, on the command line, or installed here."""
        log = next((log for log in self.logs if log.facts.compromised is not None), None)
        if log is not None and log.facts.compromised is not None:
            line = log.facts.compromised
            version = next(version for _, version in facts.named_in(line.text) if version in distributions.FORBIDDEN)
            return Compromised(version, 0 if log.is_words else line.number)
        for _, version in self.required:
            if version in distributions.FORBIDDEN:
                return Compromised(version)
        here = next((found for found in find_installed() if found.forbidden), None)
        return Compromised(str(here.version), is_installed=True) if here is not None else None
