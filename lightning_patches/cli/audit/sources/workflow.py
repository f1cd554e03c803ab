"""Read the ``run`` lines of a workflow or an action of GitHub."""

from __future__ import annotations

import os
import re
from typing import Any, Iterator, Optional

from lightning_patches.cli import _files
from lightning_patches.cli.audit.sources.commands import Shell
from lightning_patches.cli.audit.sources.items import Checkout, Item, Source
from lightning_patches.cli.audit.sources.lines import logical_lines, uses_patches


def read_workflow(data: Any, source: Source) -> Iterator[Item]:
    """Read a workflow or an action.

    Args:
        data: the parsed file.
        source: the file.
    """
    yield from uses_patches(source.text)
    shell = Shell(source, Checkout(checkout_of(source.path) or source.directory, source.place))
    for run, directory in dict.fromkeys(_runs(data)):  # YAML aliases may repeat a step many times
        shell.directory = "/"
        shell.directory = shell.path(directory)
        for number, line in logical_lines(_files.lines(run), run.line - 1):
            if not line.lstrip().startswith("#"):
                yield from shell.read(re.sub(r"\$\{\{[^{}]*\}\}", "", line), number)


def _runs(data: Any) -> Iterator[tuple[_files.YamlText, str]]:
    """Yield the commands of each step, and the directory in which they run."""
    known: set[int] = set()
    for job in [*(data.get("jobs") or {}).values(), data.get("runs")]:
        steps = job.get("steps") if isinstance(job, dict) else None
        if not isinstance(steps, list) or id(steps) in known:
            continue
        known.add(id(steps))
        for step in steps:
            if isinstance(step, dict) and isinstance(step.get("run"), str):
                yield step["run"], str(step.get("working-directory", ""))


def checkout_of(path: str) -> Optional[str]:
    """Return the checkout in which a workflow or an action runs: the parent of the last ``.github``.

    Returns ``None`` for a file that is not below ``.github/workflows`` or ``.github/actions``.
    """
    for whole in (os.path.normpath(path), os.path.abspath(path)):
        parts = whole.split(os.sep)
        for index in reversed(range(len(parts) - 2)):
            if parts[index] == ".github" and parts[index + 1] in ("workflows", "actions"):
                return os.sep.join(parts[:index]) or (os.sep if os.path.isabs(whole) else ".")
    return None
