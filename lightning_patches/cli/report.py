"""Write a block for a bug report: what is installed, and what the patches do with it.

It holds no path and no name of a host, user or script, and of the environment only LIGHTNING_PATCHES. Read it before
you paste it all the same.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
import sys
from typing import Any

import lightning_patches
from lightning_patches.cli import OK, _output, _settings
from lightning_patches.engine import gate
from lightning_patches.engine.installed import find_installed
from lightning_patches.engine.verdicts import by_release, count_fixes

HELP = "a block for a bug report, with nothing private in it"
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
    _output.write("\n".join(["```", *lines, "```"]))
    return OK


def gather() -> dict[str, Any]:
    """What a maintainer asks first, in the order in which it is shown."""
    setting = _settings.read_toggle()
    entries = _settings.verdicts(setting)
    packages = {name: version for name in PACKAGES if (version := _version(name))}
    not_applied = [
        f"{entry.patch} in {entry.distribution} {entry.version}: {entry.verdict}, {without_paths(entry.reason)}"
        for entry in entries
        if entry.verdict not in ("pending", "applied", "disabled", *gate.ELSEWHERE)
    ]
    return {
        "lightning-patches": lightning_patches.__version__,
        "Lightning": {one.distribution: one.version for one in find_installed()} or "none",
        "Python": f"{platform.python_implementation()} {'.'.join(map(str, sys.version_info[:3]))}",
        "system": f"{platform.system()} {platform.machine()}",
        "packages": packages or "none",
        "LIGHTNING_PATCHES": os.environ.get("LIGHTNING_PATCHES", "not set"),
        "fixes": {release: str(count_fixes(found)) for release, found in by_release(entries).items()} or "none",
        "not applied": not_applied or ([str(setting.error)] if setting.error else "none"),
    }


def without_paths(text: str) -> str:
    """``text`` with only the last part of each path: the rest may name a user, a host or a project."""
    return re.sub(r"(?:[A-Za-z]:)?(?:[/\\][^/\\\s'\"]+)+[/\\]", "", text)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
