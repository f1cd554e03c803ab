"""Choose the reader for a file.

Unsupported files, and files for which no parser is installed, are refused. Otherwise they would count as files that do
not require Lightning.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import Any, Iterator, NamedTuple, Optional

from lightning_patches.cli import _files
from lightning_patches.cli.audit.requirements import conda_spec
from lightning_patches.cli.audit.sources.commands import Shell, read_script
from lightning_patches.cli.audit.sources.dockerfile import read_dockerfile
from lightning_patches.cli.audit.sources.items import Checkout, Gap, Item, Kind, Reader, Source, Spec
from lightning_patches.cli.audit.sources.lines import logical_lines, read_pip_line, uses_patches
from lightning_patches.cli.audit.sources.locks import (
    is_explicit,
    read_explicit,
    read_packages,
    read_pipfile_lock,
    read_toml_lock,
)
from lightning_patches.cli.audit.sources.notebook import read_notebook
from lightning_patches.cli.audit.sources.requirements_file import looks_like_requirements, read_requirements_file
from lightning_patches.cli.audit.sources.setup import read_ini, read_setup_py
from lightning_patches.cli.audit.sources.tables import read_pipfile, read_pixi, read_pyproject
from lightning_patches.cli.audit.sources.workflow import read_workflow

READ = (
    "requirements files of pip, pyproject.toml, uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile, Pipfile.lock, "
    "environment.yml, conda-lock.yml, pixi.toml, pixi.lock, setup.py, setup.cfg, tox.ini, Dockerfiles, workflows of "
    "GitHub and other YAML files with commands, shell scripts, Makefiles, and notebooks"
)


def read_yaml(source: Source) -> Iterator[Item]:
    """Read a YAML file. Its content determines its kind."""
    if is_explicit(source.text):
        yield from read_explicit(source)
        return
    # Recipes of conda have statements of Jinja.
    text = re.sub(r"\{%[^%\n]*%\}|\{\{[^}\n]*\}\}", "", source.text) if "{%" in source.text else source.text
    data = _files.parse_yaml(text)
    data = data if isinstance(data, dict) else {}
    packages = data.get("package", data.get("packages"))
    if isinstance(data.get("dependencies"), list):
        yield from _read_environment(data["dependencies"], source)
    elif isinstance(packages, list):
        yield from read_packages(packages)
    elif isinstance(data.get("jobs"), dict) or isinstance(data.get("runs"), dict):
        yield from read_workflow(data, source)
    else:
        shell = Shell(source, Checkout(source.place, source.place.root, source.directory))
        found = [*_read_texts(data, "", shell, set())]
        yield from found
        if not found:
            yield Gap(source.path, _NO_PACKAGES, Kind.NOT_A_REQUIREMENT)


def _read_environment(dependencies: list[Any], source: Source) -> Iterator[Item]:
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


_NO_PACKAGES = (
    "is not an environment of conda, a lock file or a workflow: it has no dependencies, no packages, no jobs and no "
    "commands that install packages"
)
_LISTS = re.compile(r"dependenc|package|require|pip|conda", re.IGNORECASE)
"""Names of lists of packages."""


def _read_texts(data: Any, name: str, shell: Shell, known: set[int]) -> Iterator[Item]:
    """Read the commands and the lists of packages of other YAML files: GitLab, Azure, Cog, recipes of conda.

    Args:
        data: a part of the file.
        name: the keys above it.
        shell: reads the commands.
        known: the parts that were read. YAML aliases may repeat them many times.
    """
    if id(data) in known:
        return
    known.add(id(data))
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _read_texts(value, f"{name[-99:]}.{key}", shell, known)
    elif isinstance(data, list):
        for one in data:
            if isinstance(one, _files.YamlText) and _LISTS.search(name):
                yield Spec(conda_spec(one), one.line)
            yield from _read_texts(one, name, shell, known)
    elif isinstance(data, _files.YamlText):
        yield from uses_patches(data)
        for number, line in logical_lines(_files.lines(data), data.line - 1):
            yield from shell.read(line, number)


class Search(Enum):
    """The files of a directory that ``audit DIRECTORY`` reads."""

    ALWAYS = "all"
    IF_NAMED = "those that name Lightning or install something"
    NEVER = "none; they may be arguments of the command"


class Format(NamedTuple):
    """A kind of file.

    Args:
        name: a pattern for the file's name in lower case.
        reader: the reader; ``None`` if the format is not supported.
        search: the files of this kind that ``audit DIRECTORY`` reads.
        limit: the largest file that is read, in bytes.
        cost: the time to parse a byte, relative to JSON.
    """

    name: str
    reader: Optional[Reader]
    search: Search = Search.ALWAYS
    limit: int = _files.MAX_PARSED
    cost: int = 16


_FORMATS = (
    Format(r"(?:uv|poetry|pdm)\.lock|pylock(?:\..*)?\.toml", read_toml_lock),
    Format(r"pyproject\.toml", read_pyproject),
    Format(r"pixi\.toml", read_pixi),
    Format(r"pipfile\.lock", read_pipfile_lock, limit=_files.MAX_BYTES, cost=1),
    Format(r"pipfile", read_pipfile),
    Format(r"setup\.py", read_setup_py),
    Format(r"(?:setup|tox)\.(?:cfg|ini)", read_ini),
    Format(r"(?:environment|conda).*\.ya?ml|pixi\.lock|conda.*\.lock", read_yaml),
    Format(r"\.pre-commit-config\.yaml", None, Search.NEVER),
    Format(r".*\.ya?ml", read_yaml, Search.IF_NAMED),
    Format(r".*\.ipynb", read_notebook, Search.IF_NAMED, limit=_files.MAX_BYTES, cost=1),
    Format(
        r"(?:.*[._-])?(?:gnu)?makefile|justfile|jenkinsfile|postbuild|singularity(?:\..*)?|"
        r".*\.(?:sh|bash|zsh|ksh|csh|sbatch|slurm|pbs|job|mk|def|bat|cmd|ps1)",
        read_script,
        Search.IF_NAMED,
    ),
    Format(r".*requirements?.*\.(?:txt|in|lock|pip)|constraints.*\.(?:txt|in)", read_requirements_file),
    Format(r".*\.(?:toml|lock|json|cfg|py|whl|gz|zip|md|rst|log|ini|\w*ignore)", None, Search.NEVER),
    Format(r"(?:.*[._-])?(?:dockerfile|containerfile)(?:[._-].*)?", read_dockerfile),
    Format(r".*\.(?:txt|in|pip)|[^.]*", read_requirements_file, Search.IF_NAMED),
    Format(r".*", read_requirements_file, Search.NEVER),
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


def is_read_always(path: str) -> bool:
    """True if ``audit DIRECTORY`` reads a file, whatever it contains."""
    directory, name = os.path.split(path)
    return (
        format_of(path).search is Search.ALWAYS
        or (os.path.basename(directory) == "requirements" and name.endswith((".txt", ".in")))
        or (os.path.join(".github", "workflows") in directory and name.endswith((".yml", ".yaml")))
    )


def is_read_if_named(path: str, text: str) -> bool:
    """True if ``audit DIRECTORY`` reads a file because of its text."""
    kind = format_of(path)
    if kind.search is not Search.IF_NAMED:
        return False
    return looks_like_requirements(text) if kind.reader is read_requirements_file else bool(_MENTIONS.search(text))


_MENTIONS = re.compile(r"lightning|install", re.IGNORECASE)


def is_dockerfile(path: str) -> bool:
    return format_of(path).reader is read_dockerfile
