"""What a program has to say itself before a patch mends its error, with its own paths and names."""

from __future__ import annotations

import os
import re

from lightning_patches.cli.diagnose.log import Text

_TRUSTED = ("own-checkpoint-load", "trusted-checkpoint-load", "trusted-checkpoint-cli", "legacy-checkpoint-enum")
_REFUSED = "weights only load failed"
_CHECKPOINT = re.compile(
    r"""(?P<quote>['"])(?P<quoted>[^'"{}\n]{1,400}\.(?:ckpt|pth?))(?P=quote)|(?P<bare>[^\s'"(),={}]{1,400}\.(?:ckpt|pth?))\b"""
)
_METHOD = re.compile(r"(\w+)\(\)['`]? from outside the model")
_UNPROVEN = "has not proven to be one of this job"
AT_TOP = "`import lightning_patches` at the top of the script"


def needed(name: str, text: Text, line: int, is_patched: bool) -> str:
    """The call, argument or variable without which a patch does not mend what a log shows; "" if it needs none.

    Args:
        name: the patch.
        text: the log.
        line: index of the line that shows the bug.
        is_patched: the program ran with the patch.
    """
    if name in _TRUSTED and (name != "legacy-checkpoint-enum" or _REFUSED in text.searched):
        if name == "own-checkpoint-load" and is_patched and _UNPROVEN not in text.searched:
            return ""  # the run has not written the file
        variable = "LIGHTNING_PATCHES_HANG_SECRET=... (the same 16 characters or more) for all ranks, or "
        trust = f"`{_trust(text, line)}` below {AT_TOP}, if nobody else can write to that directory"
        return (variable if _UNPROVEN in text.searched else "") + trust
    if name == "fabric-mark-forward-method":
        method = _METHOD.search(text.lines[line])
        if method:
            return f"`model.mark_forward_method({method[1]!r})` after `fabric.setup`, below {AT_TOP}"
    return ""


def _trust(text: Text, line: int) -> str:
    """The call that trusts the directory of the checkpoint that is named last before a line, or else first after it."""
    named = map(_checkpoint, [*reversed(text.lines[: line + 1]), *text.lines[line + 1 :]])
    path = next(filter(None, named), "")
    if "://" in path:
        return "lightning_patches.trust_checkpoints('DIRECTORY')` for a local copy of the file in a `DIRECTORY"
    directory = os.path.dirname(path) or ("." if path else "DIRECTORY OF THE CHECKPOINT")
    return f"lightning_patches.trust_checkpoints({directory!r})"


def _checkpoint(line: str) -> str:
    """The last checkpoint that a line names."""
    found = [match["quoted"] or match["bare"] for match in _CHECKPOINT.finditer(line)]
    return found[-1] if found else ""
