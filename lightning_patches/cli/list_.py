"""List all patches: title, releases with the bug, and release with the fix.

"(changes ...)" names the results that may change in a program that finishes without the patch: numbers, the order of
data, files, or how it ends. LIGHTNING_PATCHES=same-results selects the default patches that change no results.

With --source FILE, list only patches that change FILE of Lightning, or that recognize the bug by it. The end of its
path is enough, such as pytorch/tuner/lr_finder.py.

With --since VERSION, list only patches that were added after that version of lightning-patches.

With --json, one object: schema (1) and patches, an array of records (see `lightning-patches show --help`).
"""

from __future__ import annotations

import argparse
import re

from packaging.version import InvalidVersion, Version

from lightning_patches import patches as catalogue
from lightning_patches.cli import _arguments, _output
from lightning_patches.cli._exit_status import OK, UsageError
from lightning_patches.known import records
from lightning_patches.patch import Patch

HELP = "list all patches"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_group(parser)
    parser.add_argument("--source", metavar="FILE", help="only patches that change or check this file of Lightning")
    parser.add_argument("--since", metavar="VERSION", help="only patches added after this version of lightning-patches")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    since = _version(args.since) if args.since is not None else None
    patches = [
        patch
        for patch in catalogue.all_patches()
        if args.group in (None, patch.group)
        and (args.source is None or _concerns(patch, args.source))
        and (since is None or _version(patch.added) > since)
    ]
    if args.json:
        _output.write_json({"patches": [records.as_dict(patch) for patch in patches]})
        return OK
    rows = [
        (
            patch.name,
            patch.group if patch.kind == "default" else f"{patch.group}, {patch.kind}",
            records.affected(patch),
            records.fixed_in(patch),
            records.numbers(patch),
            records.title(patch),
        )
        for patch in patches
    ]
    _output.write_table(("PATCH", "GROUP", "AFFECTED", "FIXED IN", "UPSTREAM", "WHAT IT DOES"), rows)
    return OK


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise UsageError(f"--since takes a version such as 0.1.0, not {_output.cut(text)!r}") from None


def _concerns(patch: Patch, source: str) -> bool:
    """True if a patch changes or checks a file, given by the end of its path, with or without the namespace."""
    ending = "/" + re.sub(r"^(.*/)?(lightning|pytorch_lightning|lightning_fabric)/(?=.)", "", source.strip("/"))
    ending = re.sub(r"(/__init__)?\.py$", "", ending)
    modules = {location.partition(":")[0].replace(".", "/") for location in patch.locations}
    return any(f"/{module}".endswith(ending) or f"/{module}/".startswith(f"{ending}/") for module in modules)
