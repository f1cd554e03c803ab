"""Find the call, argument or variable that the user must add so that a patch fixes the error, with the log's paths and
names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from lightning_patches.cli.diagnose.lines import Line

MOST_LINES = 500
"""Number of lines that are searched before and after the line that shows the bug."""

TRUSTED = (
    "own-checkpoint-load",
    "weights-only-load",
    "trusted-checkpoint-load",
    "trusted-checkpoint-cli",
    "legacy-checkpoint-enum",
)
_REFUSED = "weights only load failed"
_CHECKPOINT = re.compile(
    r"""(?P<quote>['"])(?P<quoted>[^'"{}\n]{1,400}\.(?:ckpt|pth?))(?P=quote)|(?P<bare>[^\s'"(),={}]{1,400}\.(?:ckpt|pth?))\b"""
)
_METHOD = re.compile(r"(\w+)\(\)['`]? from outside the model")
_UNPROVEN = "has not proven to be one of this job"
AT_TOP = "`import lightning_patches` at the top of the script"


def needed(name: str, lines: Sequence[Line], line: int, is_patched: bool) -> str:
    """Return the call, argument or variable that the user must add so that a patch fixes the error in a log, or "".

    Args:
        name: name of the patch.
        lines: lines of the log.
        line: index of the line that shows the bug.
        is_patched: True if the program ran with the patch.
    """
    if name in TRUSTED:
        near = [one.text for one in lines[max(line - MOST_LINES, 0) : line + MOST_LINES]]
        text = "\n".join(near).lower()
        if name == "legacy-checkpoint-enum" and _REFUSED not in text:
            return ""
        if name == "own-checkpoint-load" and is_patched and _UNPROVEN not in text:
            return ""  # another run has written the file
        variable = "LIGHTNING_PATCHES_HANG_SECRET=... (the same 16 characters or more) for all ranks, or "
        trust = f"`{_trust(near, min(line, MOST_LINES))}` below {AT_TOP}, if only you can write to that directory"
        return (variable if _UNPROVEN in text else "") + trust
    if name == "fabric-mark-forward-method":
        method = _METHOD.search(lines[line].text)
        if method:
            return f"`model.mark_forward_method({method[1]!r})` after `fabric.setup`, below {AT_TOP}"
    return ""


def _trust(lines: Sequence[str], line: int) -> str:
    """Return the call that trusts the directory of a checkpoint: the last one before a line, or the next one after
    it."""
    named = map(_checkpoint, [*reversed(lines[: line + 1]), *lines[line + 1 :]])
    path = next(filter(None, named), "")
    if "://" in path:
        return "lightning_patches.trust_checkpoints('DIRECTORY')` for a local copy of the file in a `DIRECTORY"
    directory = os.path.dirname(path) or ("." if path else "DIRECTORY OF THE CHECKPOINT")
    return f"lightning_patches.trust_checkpoints({directory!r})"


def _checkpoint(line: str) -> str:
    """Return the path of the last checkpoint that a line names, or ""."""
    if ".ckpt" not in line and ".pt" not in line:
        return ""
    found = [match["quoted"] or match["bare"] for match in _CHECKPOINT.finditer(line[:500])]
    return found[-1] if found else ""
