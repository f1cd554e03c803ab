"""Choose the reader for a file.

Unsupported files, and files for which no parser is installed, are refused. Otherwise they would count as files that do
not require Lightning.
"""

from __future__ import annotations

import os
import re
from typing import Iterator, NamedTuple, Optional

from lightning_patches.cli import _files
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit.sources.conda import read_environment
from lightning_patches.cli.audit.sources.dockerfile import read_dockerfile
from lightning_patches.cli.audit.sources.items import Item, Reader, Source
from lightning_patches.cli.audit.sources.locks import (
    is_explicit,
    read_explicit,
    read_packages,
    read_pipfile_lock,
    read_toml_lock,
)
from lightning_patches.cli.audit.sources.notebook import read_notebook
from lightning_patches.cli.audit.sources.requirements_file import read_requirements_file
from lightning_patches.cli.audit.sources.tables import read_pipfile, read_pixi, read_pyproject
from lightning_patches.cli.audit.sources.workflow import read_workflow

READ = (
    "requirements files of pip, pyproject.toml, uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile, Pipfile.lock, "
    "environment.yml, conda-lock.yml, pixi.toml, pixi.lock, Dockerfiles, workflows of GitHub, and notebooks"
)


def read_yaml(source: Source) -> Iterator[Item]:
    """Read a YAML file. Its content determines its kind."""
    if is_explicit(source.text):
        yield from read_explicit(source)
        return
    data = _files.parse_yaml(source.text)
    data = data if isinstance(data, dict) else {}
    packages = data.get("package", data.get("packages"))
    if isinstance(data.get("dependencies"), list):
        yield from read_environment(data["dependencies"], source)
    elif isinstance(packages, list):
        yield from read_packages(packages)
    elif isinstance(data.get("jobs"), dict) or isinstance(data.get("runs"), dict):
        yield from read_workflow(data, source)
    else:
        raise UsageError(
            f"{source.path} is not an environment of conda, a lock file or a workflow: it has no dependencies, no "
            "packages and no jobs."
        )


class Format(NamedTuple):
    """A kind of file.

    Args:
        name: a pattern for the file's name in lower case.
        reader: the reader; ``None`` if the format is not supported.
        limit: the largest file that is read, in bytes.
        cost: the time to parse a byte, relative to JSON.
    """

    name: str
    reader: Optional[Reader]
    limit: int = _files.MAX_PARSED
    cost: int = 16


_FORMATS = (
    Format(r"(?:uv|poetry|pdm)\.lock|pylock(?:\..*)?\.toml", read_toml_lock),
    Format(r"pyproject\.toml", read_pyproject),
    Format(r"pixi\.toml", read_pixi),
    Format(r"pipfile\.lock", read_pipfile_lock, _files.MAX_BYTES, 1),
    Format(r"pipfile", read_pipfile),
    Format(r".*\.ya?ml|pixi\.lock|conda-.*\.lock", read_yaml),
    Format(r".*\.ipynb", read_notebook, _files.MAX_BYTES, 1),
    Format(r"(?:.*[.-])?(?:dockerfile|containerfile)(?:[.-].*)?", read_dockerfile),
    Format(r".*\.(?:toml|lock|json|cfg|py|whl|gz|zip|md|rst|log|ini)", None),
    Format(r".*", read_requirements_file),
)
"""The first match counts. Files with other names are read as requirements files."""


def format_of(path: str, is_requirements_file: bool = False) -> Format:
    """Return the format of a file.

    Args:
        path: the file.
        is_requirements_file: True if it is a requirements file, independent of its name.
    """
    name = "" if is_requirements_file else os.path.basename(path).lower()
    return next(one for one in _FORMATS if re.fullmatch(one.name, name, re.DOTALL))


def is_dockerfile(path: str) -> bool:
    return format_of(path).reader is read_dockerfile
