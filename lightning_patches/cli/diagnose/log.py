"""The contents of a log, a script or a description, for later steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

from lightning_patches.cli.diagnose import tracebacks
from lightning_patches.cli.diagnose.facts import Facts
from lightning_patches.cli.diagnose.hangs import Hang
from lightning_patches.cli.diagnose.lines import Line
from lightning_patches.cli.diagnose.tracebacks import Raised


@dataclass(frozen=True, eq=False)
class Log:
    """A log, a script or a description.

    Args:
        name: name of the file or program; "" for words on the command line.
        lines: the lines that were read.
        raised: errors in the lines.
        facts: other facts in the lines.
        is_script: True for a Python script.
        is_words: True for a user's description.
        hangs: the last report of the hang watch in the file, or in each file of a directory.
        left_out: a sentence about each part that was not read.
    """

    name: str
    lines: Sequence[Line] = ()
    raised: Sequence[Raised] = ()
    facts: Facts = Facts()
    is_script: bool = False
    is_words: bool = False
    hangs: Sequence[Hang] = ()
    left_out: Sequence[str] = ()

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @cached_property
    def ending(self) -> Optional[Raised]:
        """The error that ended the program."""
        return tracebacks.ending(self.raised)

    @property
    def cause(self) -> Optional[Raised]:
        """The error that ended the program, unless it follows from the end of another process."""
        is_cause = self.ending is not None and not tracebacks.FOLLOW_UP_ERRORS.match(self.ending.words)
        return self.ending if is_cause else None
