"""Print a block for a bug report: installed packages, and the verdicts of the patches.

`lightning_patches.report()` in Python is different: it returns the verdicts of `lightning-patches status`.

The block has no path, host name, user name or script name. Its only environment variable is LIGHTNING_PATCHES. Read it
before you paste it.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from typing import Any

import lightning_patches
from lightning_patches import system
from lightning_patches.cli import _output, _toggle
from lightning_patches.cli._exit_status import OK
from lightning_patches.engine import gate
from lightning_patches.engine.verdicts import by_release, count_fixes
from lightning_patches.known.installed import find_installed

HELP = "print a block for a bug report, without private data"
PACKAGES = ("torch", "torchmetrics", "lightning-utilities", "accelerate", "bitsandbytes", "deepspeed", "wrapt", "rich")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    found = gather()
    if args.json:
        _output.write_json(found)
        return OK
    lines = []
    for name, value in found.items():
        if isinstance(value, dict):
            value = [f"{key}: {text}" for key, text in value.items()]
        lines += [f"{name}: {value}"] if isinstance(value, str) else [f"{name}:", *(f"  {line}" for line in value)]
    _output.write("\n".join(["```", *map(_output.printable, lines), "```"]))
    return OK


def gather() -> dict[str, Any]:
    """Return the facts that a maintainer needs, in the order of the output."""
    setting = _toggle.read_toggle()
    entries = _toggle.verdicts(setting)
    packages = {name: _plain(version) for name in PACKAGES if (version := system.installed_version(name))}
    not_applied = [
        f"{entry.patch} in {entry.distribution} {_plain(entry.version)}: {entry.verdict}, {without_paths(entry.reason)}"
        for entry in entries
        if entry.verdict not in ("pending", "applied", "disabled", *gate.ELSEWHERE)
    ]
    return {
        "lightning-patches": lightning_patches.__version__,
        "Lightning": {one.distribution: _plain(one.version) for one in find_installed()} or "none",
        "Python": f"{platform.python_implementation()} {'.'.join(map(str, sys.version_info[:3]))}",
        "system": f"{platform.system()} {platform.machine()}",
        "packages": packages or "none",
        "LIGHTNING_PATCHES": without_paths(_output.cut(os.environ.get("LIGHTNING_PATCHES", "not set"), 2000)),
        "fixes": {
            f"{found[0].distribution} {_plain(found[0].version)}": str(count_fixes(found))
            for found in by_release(entries).values()
        }
        or "none",
        "not applied": not_applied or ([without_paths(str(setting.error))] if setting.error else "none"),
    }


def without_paths(text: str) -> str:
    """Cut a text before its first path, which may name a user, a host or a project. The end of a path is unknown."""
    slash = re.search(r"[/\\]", text)
    if slash is None:
        return text
    before = text[: slash.start()]
    begins = [before.rfind(" ") + 1, *(at for at in map(before.find, ("'", '"', ": ", "(")) if at >= 0)]
    return before[: min(begins)].rstrip(" :") + " ..."


def _plain(version: str) -> str:
    """Return a version, or the number at the beginning of a text that is not a version."""
    if re.fullmatch(r"\d[\w.!-]{0,60}(\+[\w.-]{1,60})?", version):
        return version
    number = re.match(r"\d[\w.!-]{0,60}", version)
    return f"{number[0]} ..." if number else "unknown"
