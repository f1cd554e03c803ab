"""Read environments of conda."""

from __future__ import annotations

from typing import Any, Iterator

from lightning_patches.cli.audit.requirements import conda_spec
from lightning_patches.cli.audit.sources.items import Item, Source, Spec
from lightning_patches.cli.audit.sources.lines import read_pip_line


def read_environment(dependencies: list[Any], source: Source) -> Iterator[Item]:
    """Read the dependencies of an environment.yml: packages of conda, and lines for pip.

    Args:
        dependencies: the parsed list of dependencies.
        source: the file.
    """
    for item in dependencies:
        if isinstance(item, dict):
            for line in item.get("pip") or ():
                yield from read_pip_line(line, line.line, source, ("pip",))
        elif item.startswith("-"):  # MLflow's python_env.yaml: "-r requirements.txt"
            yield from read_pip_line(item, item.line, source)
        else:
            yield Spec(conda_spec(item), item.line, group=("conda",))
