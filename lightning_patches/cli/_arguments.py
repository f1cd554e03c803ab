"""Command-line arguments of several commands: patches and groups of patches."""

from __future__ import annotations

import argparse
import difflib

from lightning_patches import patches as catalogue
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.known import lookup
from lightning_patches.patch import GROUPS, Patch

_LONGEST = 300
"""Longest key shown in an error. No patch name or issue URL is longer."""


def find_patches(key: str) -> tuple[Patch, ...]:
    """Return the patches with a name or number.

    Raises:
        UsageError: no patch has it. The message lists the closest names.
    """
    key = key[: _LONGEST + 1]
    found = catalogue.find(str(lookup.number_in(key) or key.strip().lower().replace("_", "-")))
    if found:
        return found
    patches = catalogue.all_patches()
    words = [*(patch.name for patch in patches), *{str(number) for patch in patches for number in patch.numbers}]
    close = difflib.get_close_matches(key.lower().lstrip("#"), words, n=3, cutoff=0.5)
    close += [word for word in words if len(key) > 2 and key.lower() in word and word not in close][:3]
    hint = f"Did you mean {' or '.join(close)}?" if close else "`lightning-patches list` shows all patches."
    raise UsageError(f"there is no patch, issue or pull request {key[:_LONGEST]!r}. {hint}")


def add_group(parser: argparse.ArgumentParser) -> None:
    """Add ``--group`` to a command that lists patches."""
    parser.add_argument(
        "--group", choices=GROUPS, metavar="GROUP", help=f"only the patches of a group: {', '.join(GROUPS)}"
    )


def complete(argument: argparse.Action) -> None:
    """Let the shell complete the names of patches for an argument."""
    setattr(argument, "completer", lambda **_: [patch.name for patch in catalogue.all_patches()])  # noqa: B010
