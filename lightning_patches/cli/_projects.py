"""Which Lightning a project asks for, from the files in which projects say so.

A file comes in, and an :class:`~lightning_patches.cli._requirements.Asked` goes out. Every format is read with the
library that is made for it. Where that is not installed, or the format is not known, the file is refused: that it asks
for no Lightning must never be said of a file that was not understood.
"""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Iterator, Optional

from lightning_patches.cli import UsageError, _files
from lightning_patches.cli._installs import (
    WITH_FILE,
    Place,
    has_patches,
    logical_lines,
    option_of,
    read_commands,
    read_dockerfile,
    read_pip,
)
from lightning_patches.cli._requirements import Asked, conda_spec, lines_of, specifier

READ = (
    "requirements files of pip, pyproject.toml, uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile, Pipfile.lock, "
    "environment.yml, conda-lock.yml, pixi.toml, pixi.lock, Dockerfiles, workflows of GitHub, and notebooks"
)
_UNKNOWN = "https://unknown.invalid"
"""The address of what comes from a directory or a repository, which is not asked for a release."""


def read(path: str, context: str = "") -> Asked:
    """What a file asks for.

    Args:
        path: of the file.
        context: the directory that ``docker build`` is given, for a Dockerfile; "" for that of the file.

    Raises:
        UsageError: it cannot be read, is of a format that is not known or whose library is not installed, or does not
            tell whether it asks for Lightning.
    """
    asked = Asked()
    read_into(path, asked, context)
    if not asked.found and asked.unclear:
        raise UsageError(f"{asked.unclear[0]}, and so whether Lightning is asked for cannot be told.")
    return asked


def read_into(path: str, asked: Asked, context: str = "") -> None:
    """The same, for a file that another one names.

    Raises:
        UsageError: it cannot be read, or is of a format that is not known or whose library is not installed.
    """
    name = os.path.basename(path).lower()
    reader = next(reader for pattern, reader in _FORMATS if re.fullmatch(pattern, name, re.DOTALL))
    if reader is None:
        _files.read(path)
        raise UsageError(f"{path} cannot be read. Those that can are {READ}.")
    if reader is read_dockerfile:
        read_dockerfile(path, asked, context)
        if not asked.found:
            asked.unclear.append(f"{path} has no installation of Lightning by its name; it may be in the base image")
    elif reader is read_pip:
        read_pip(path, asked)
    else:
        with _files.parsing(path):
            reader(path, asked)


def _all(texts: Iterator[Any], path: str, text: str, asked: Asked, locked: bool = False) -> None:
    """Take requirements, each once, with the lines on which their distributions are first named."""
    before = len(asked.found)
    for one in dict.fromkeys(texts):
        asked.add(one, path, path, 1, locked)
    asked.put_lines(before, path, _files.lines(text))


def _toml_file(texts: Callable[[Any], Iterator[Any]], locked: bool = False) -> Callable[[str, Asked], None]:
    def reader(path: str, asked: Asked) -> None:
        text = _files.read_text(path)
        _all(texts(_files.parse_toml(text)), path, text, asked, locked)

    return reader


def _locked(data: Any) -> Iterator[str]:
    """uv.lock, poetry.lock, pdm.lock, and pylock.toml, which is the standard for them (PEP 751)."""
    python = data.get("requires-python") or data.get("metadata", {}).get("requires_python")
    yield from _python(python or data.get("metadata", {}).get("python-versions"))
    for package in data.get("package", data.get("packages", ())):
        yield f"{package['name']}=={package['version']}" if "version" in package else f"{package['name']} @ {_UNKNOWN}"


def _python(spec: Any) -> Iterator[str]:
    if isinstance(spec, str):
        yield f"python{specifier(spec)}"


def _pyproject(path: str, asked: Asked) -> None:
    text = _files.read_text(path)
    data = _files.parse_toml(text)
    before = len(asked.found)
    _all(_of_pyproject(data), path, text, asked)
    files = data.get("tool", {}).get("setuptools", {}).get("dynamic", {}).get("dependencies", {}).get("file", ())
    for name in [files] if isinstance(files, str) else files:
        read_pip(os.path.join(os.path.dirname(path), name), asked, path)
    if len(asked.found) == before and not files and "dependencies" in data.get("project", {}).get("dynamic", ()):
        asked.unclear.append(f"{path} leaves its dependencies to the build (dynamic)")


def _of_pyproject(data: Any) -> Iterator[Any]:
    project, tool = data.get("project", {}), data.get("tool", {})
    yield from _python(project.get("requires-python"))
    yield from project.get("dependencies", ())
    groups = [*project.get("optional-dependencies", {}).values(), *data.get("dependency-groups", {}).values()]
    groups += tool.get("pdm", {}).get("dev-dependencies", {}).values()
    groups.append(tool.get("uv", {}).get("dev-dependencies", ()))
    for group in groups:
        yield from (item for item in group if isinstance(item, str))
    poetry = tool.get("poetry", {})
    tables = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    tables += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    for table in tables:
        yield from _named(table)
    yield from _of_pixi(tool.get("pixi", {}))


def _of_pixi(data: Any) -> Iterator[str]:
    """pixi.toml: conda's packages and pip's, also of features and platforms."""
    tables = [data, *data.get("feature", {}).values()]
    tables += [target for table in tables for target in table.get("target", {}).values()]
    for table in tables:
        for key in ("dependencies", "pypi-dependencies", "host-dependencies"):
            yield from _named(table.get(key, {}))


def _of_pipfile(data: Any) -> Iterator[str]:
    python = data.get("requires", {})
    yield from _python(python.get("python_version") and f"{python['python_version']}.*")
    for section, table in data.items():
        if isinstance(table, dict) and section not in ("requires", "pipenv", "scripts"):
            yield from _named(table)


def _pipfile_lock(path: str, asked: Asked) -> None:
    text = _files.read_text(path)
    data = _files.parse_json(text)
    tables = [table for section, table in data.items() if section != "_meta"]
    _all((one for table in tables for one in _named(table)), path, text, asked, True)


def _named(table: Any) -> Iterator[str]:
    """``{name: version}`` as Poetry and Pipenv write it; ``version`` may stand in a table of its own."""
    for name, value in table.items():
        for one in value if isinstance(value, list) else [value]:
            version = one.get("version") if isinstance(one, dict) else one
            if version is None:
                yield f"{name} @ {_UNKNOWN}"
            else:
                yield name + specifier(version)


def _notebook(path: str, asked: Asked) -> None:
    """What the cells install, with ``!pip install`` and ``%pip install``."""
    text = _files.read_text(path)
    data = _files.parse_json(text)
    cells = data.get("cells") or [cell for sheet in data.get("worksheets", ()) for cell in sheet["cells"]]
    place = Place(os.path.dirname(path) or ".")
    before, imports = len(asked.found), False
    for cell in cells:
        source = cell.get("source", cell.get("input", ""))
        lines = _files.lines(source if isinstance(source, str) else "".join(source))
        if cell.get("cell_type") != "code":
            continue
        for _, line in logical_lines(lines):
            imports |= re.match(r"\s*(?:import|from)\s(?:pytorch_lightning|lightning(?!_))", line) is not None
            asked.has_patches |= has_patches(line)
            if line.lstrip().startswith(("!", "%")):
                read_commands(line.lstrip().lstrip("!%"), asked, path, path, 1, place)
    asked.put_lines(before, path, _files.lines(text))
    if imports and len(asked.found) == before:
        asked.unclear.append(f"{path} imports Lightning and installs none: the environment it runs in decides")


def _yaml(path: str, asked: Asked) -> None:
    """A file that names its form in what it holds: conda's environments and lock files, pixi.lock, and workflows."""
    text = _files.read_text(path)
    if text.startswith("# This file may be used to create an environment") or "@EXPLICIT" in text[:2000].split():
        _all(_of_addresses(_files.lines(text)), path, text, asked, True)
        return
    data = _files.parse_yaml(text)
    data = data if isinstance(data, dict) else {}
    packages = data.get("package", data.get("packages"))
    if isinstance(data.get("dependencies"), list):
        _all(_of_conda(data["dependencies"]), path, text, asked)
        for name in _files_of_conda(data["dependencies"]):
            read_pip(os.path.join(os.path.dirname(path), name), asked, path)
    elif isinstance(packages, list):
        _all(_of_conda_lock(packages), path, text, asked, True)
    elif isinstance(data.get("jobs"), dict) or isinstance(data.get("runs"), dict):
        _workflow(data, path, text, asked)
    else:
        raise UsageError(
            f"{path} has no list of dependencies, as an environment of conda has, and no packages or jobs: it is no "
            "lock file and no workflow either."
        )


def _of_conda(items: Any) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            yield from (one for one in item.get("pip") or () if not one.startswith("-"))
        else:
            yield conda_spec(item)


def _files_of_conda(items: Any) -> Iterator[str]:
    for one in (one for item in items if isinstance(item, dict) for one in item.get("pip") or ()):
        option, name = option_of(one)
        if option in WITH_FILE and "://" not in name:
            yield name


def _of_conda_lock(packages: Any) -> Iterator[str]:
    """conda-lock.yml has names and versions, pixi.lock has them or only addresses."""
    for package in packages:
        if "name" in package and "version" in package:
            yield f"{package['name']}=={package['version']}"
        else:
            yield from _of_addresses([package.get("conda") or package.get("pypi") or package.get("url") or ""])


def _of_addresses(addresses: list[str]) -> Iterator[str]:
    for address in addresses:
        file = address.partition("#")[0].strip().rpartition("/")[2]
        parts = file.rsplit("-", 2)
        if file.endswith((".conda", ".tar.bz2")) and len(parts) == 3:
            yield f"{parts[0]}=={parts[1]}"
        elif file.endswith((".whl", ".tar.gz")):
            yield address


def _workflow(data: Any, path: str, text: str, asked: Asked) -> None:
    """The `run` lines of a workflow of GitHub's, or of an action."""
    asked.has_patches |= has_patches(text)
    before = len(asked.found)
    for run, directory in dict.fromkeys(_runs(data)):  # an alias may stand for many
        place = Place(_checkout(path))
        place.directory = place.path(directory)
        for _, line in logical_lines(_files.lines(run)):
            if not line.lstrip().startswith("#"):
                read_commands(re.sub(r"\$\{\{[^{}]*\}\}", "", line), asked, path, path, 1, place)
    asked.put_lines(before, path, _files.lines(text))


def _runs(data: Any) -> Iterator[tuple[str, str]]:
    """The commands of all steps, and the directory in which they run."""
    seen: set[int] = set()
    for job in [*(data.get("jobs") or {}).values(), data.get("runs")]:
        steps = job.get("steps") if isinstance(job, dict) else None
        if not isinstance(steps, list) or id(steps) in seen:
            continue
        seen.add(id(steps))
        for step in steps:
            if isinstance(step, dict) and isinstance(step.get("run"), str):
                yield step["run"], str(step.get("working-directory", ""))


def directory_of(path: str) -> str:
    """The directory of the project that a file is of."""
    return _checkout(path) if os.path.join(".github", "") in path else os.path.dirname(path) or "."


def _checkout(path: str) -> str:
    """The top of the checkout that a workflow is in, where its commands run."""
    directory = os.path.dirname(os.path.abspath(path))
    return directory.partition(f"{os.sep}.github")[0] or os.sep


Reader = Callable[..., None]
_FORMATS: tuple[tuple[str, Optional[Reader]], ...] = (
    (r"(?:uv|poetry|pdm)\.lock|pylock(?:\..*)?\.toml", _toml_file(_locked, True)),
    (r"pyproject\.toml", _pyproject),
    (r"pixi\.toml", _toml_file(_of_pixi)),
    (r"pipfile\.lock", _pipfile_lock),
    (r"pipfile", _toml_file(_of_pipfile)),
    (r".*\.ya?ml|pixi\.lock|conda-.*\.lock", _yaml),
    (r".*\.ipynb", _notebook),
    (r"(?:.*[.-])?(?:dockerfile|containerfile)(?:[.-].*)?", read_dockerfile),
    (r".*\.(?:toml|lock|json|cfg|py|whl|gz|zip|md|rst|log|ini)", None),
    (r".*", read_pip),
)
"""File names, and who reads them. What nobody reads is refused; a name that says nothing is pip's."""

# -------------------------------------------------------------------- directories

_FOUND = re.compile(
    r"(?:requirements.*|constraints.*)\.(?:txt|in)|pyproject\.toml|(?:uv|poetry|pdm|pixi)\.lock|pylock(?:\..*)?\.toml|"
    r"pipfile(?:\.lock)?|pixi\.toml|(?:environment|conda).*\.(?:ya?ml|lock)|.*\.ipynb|"
    r"(?:.*[.-])?(?:dockerfile|containerfile)(?:[.-].*)?"
)
LOCKED_BESIDE = ("pyproject.toml", "pipfile", "pixi.toml")
"""Where there is a lock file in the same directory, what it says is what is installed."""
_DEEPEST, _MOST_DIRECTORIES, _MOST_FILES = 4, 2000, 200
_NOT_OURS = ("node_modules", "site-packages", "__pycache__", "build", "dist")


def files_in(directory: str) -> list[str]:
    """The files below a directory that may ask for Lightning, those of the top first; no link is followed."""
    found = [
        path
        for path in _walk(directory)
        if _FOUND.fullmatch(os.path.basename(path).lower())
        or os.path.basename(os.path.dirname(path)) == "requirements"
        and path.endswith((".txt", ".in"))
        or os.path.join(".github", "workflows") in path
        and path.endswith((".yml", ".yaml"))
    ]
    return sorted(found, key=lambda path: (path.count(os.sep), path))[:_MOST_FILES]


def not_read(directory: str) -> list[str]:
    """What is to be said of the files below a directory that name Lightning and that only a build can read."""
    found = []
    for path in _walk(directory):
        if os.path.basename(path) in ("setup.py", "setup.cfg"):
            try:
                named = lines_of(_files.lines(_files.read_text(path)))
            except UsageError:
                continue
            found += [f"{path}, line {line}, names {name}, and is not read" for name, line in named.items()]
    return found


def _walk(directory: str, deepest: int = _DEEPEST) -> Iterator[str]:
    top = directory.rstrip(os.sep).count(os.sep)
    for number, (place, directories, files) in enumerate(os.walk(directory)):
        if number > _MOST_DIRECTORIES:
            return
        deep = place.rstrip(os.sep).count(os.sep) - top
        directories[:] = sorted(
            name
            for name in directories
            if deep < deepest
            and name not in _NOT_OURS
            and (not name.startswith(".") or name == ".github")
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        )
        for name in sorted(files):
            path = os.path.join(place, name)
            if not os.path.islink(path):
                yield os.path.normpath(path)


_IMPORTS = re.compile(rb"^[ \t]*(?:import|from)[ \t]+lightning_patches\b", re.MULTILINE)


def imports_patches(directory: str) -> bool:
    """Whether a script in a directory, or in those within it, imports ``lightning_patches``."""
    scripts = (path for path in _walk(directory, 2) if path.endswith(".py"))
    for _, path in zip(range(_MOST_FILES), scripts):
        try:
            if _IMPORTS.search(_files.read(path, _files.MAX_SCRIPT)):
                return True
        except UsageError:
            continue
    return False
