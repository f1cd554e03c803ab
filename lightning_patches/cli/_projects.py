"""Readers of the files in which projects say what they require.

Each format is parsed with the library that is made for it. If that library is missing, or the format is unknown, the
file is refused: a file that was not understood must never count as one that requires no Lightning.
"""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Iterator, List, Optional, Tuple

from lightning_patches.cli import _files
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli._installs import (
    logical_lines,
    pip_line,
    read_commands,
    read_dockerfile,
    read_pip,
    uses_patches,
)
from lightning_patches.cli._requirements import conda_spec, specifier
from lightning_patches.cli._sources import Checkout, Include, Item, Locks, Reader, Source, Spec, Unclear

READ = (
    "requirements files of pip, pyproject.toml, uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile, Pipfile.lock, "
    "environment.yml, conda-lock.yml, pixi.toml, pixi.lock, Dockerfiles, workflows of GitHub, and notebooks"
)
_UNKNOWN = "https://unknown.invalid"
"""The address of a requirement that comes from a directory or a repository, without a release."""


def reader_of(path: str, reader: Optional[Reader] = None) -> Tuple[Reader, int, int]:
    """The reader of a file, its limit in bytes, and its cost per byte.

    Args:
        path: the file.
        reader: the reader, if the name of the file does not decide.

    Raises:
        UsageError: the file cannot be read, or has no reader.
    """
    rows = (rest for pattern, *rest in _FORMATS if (rest[0] is reader if reader else _matches(pattern, path)))
    found, most, cost = next(rows)
    if found is None:
        _files.read(path)
        raise UsageError(f"{path} cannot be read. Those that can are {READ}.")
    return found, most, cost


def is_dockerfile(path: str) -> bool:
    """True if a file is read as a Dockerfile."""
    return next(row for row in _FORMATS if _matches(row[0], path))[1] is read_dockerfile


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(pattern, os.path.basename(path).lower(), re.DOTALL) is not None


# -------------------------------------------------------------------- TOML


def _toml_file(specs: Callable[[Any], Iterator[Spec]]) -> Reader:
    def reader(source: Source) -> Iterator[Item]:
        yield from specs(_files.parse_toml(source.text))

    return reader


def _lock(source: Source) -> Iterator[Item]:
    """uv.lock, poetry.lock, pdm.lock, and pylock.toml, which is the standard for them (PEP 751)."""
    data = _files.parse_toml(source.text)
    python = data.get("requires-python") or data.get("metadata", {}).get("requires_python")
    yield from _python(python or data.get("metadata", {}).get("python-versions"))
    lines = _files.lines(source.text)
    tables = [number for number, line in enumerate(lines, 1) if re.match(r"\s*\[\[\s*packages?\s*\]\]", line)]
    packages = data.get("package", data.get("packages", ()))
    after = tables if len(tables) == len(packages) else [1] * len(packages)
    for package, line in zip(packages, after):
        version = package.get("version")
        spec = f"{package['name']}=={version}" if version is not None else f"{package['name']} @ {_UNKNOWN}"
        yield Spec(spec, after=line, is_locked=True)


def _python(spec: Any) -> Iterator[Spec]:
    if isinstance(spec, str):
        yield Spec(f"python{specifier(spec, 'python')}")


def _pyproject(source: Source) -> Iterator[Item]:
    data = _files.parse_toml(source.text)
    project, tool = data.get("project", {}), data.get("tool", {})
    yield from _python(project.get("requires-python"))
    yield from _texts(project.get("dependencies", ()))
    extras = [*project.get("optional-dependencies", {}).items(), *data.get("dependency-groups", {}).items()]
    for name, items in extras:
        yield from _texts((item for item in items if isinstance(item, str)), f"[{name}]")
    for items in [
        *tool.get("pdm", {}).get("dev-dependencies", {}).values(),
        tool.get("uv", {}).get("dev-dependencies"),
    ]:
        yield from _texts(item for item in items or () if isinstance(item, str))
    if "poetry" in tool or "pdm" in tool:
        yield Locks()
    poetry = tool.get("poetry", {})
    tables = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    tables += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    for table in tables:
        yield from _named(table)
    yield from _pixi(tool.get("pixi", {}))
    files = tool.get("setuptools", {}).get("dynamic", {}).get("dependencies", {}).get("file", ())
    for name in [files] if isinstance(files, str) else files:
        yield Include(source.beside(name), source.place, reader=read_pip)
    if not files and "dependencies" in project.get("dynamic", ()):
        yield Unclear(f"{source.path} leaves its dependencies to the build (dynamic)", if_none=True)


def _texts(texts: Any, extra: str = "") -> Iterator[Spec]:
    for text in texts:
        if not isinstance(text, str):
            raise TypeError
        yield Spec(text, written=text, group=(extra,) if extra else ())


def _pixi(data: Any) -> Iterator[Spec]:
    """pixi.toml: conda's packages and pip's, also of features and platforms."""
    for name, feature in [("", data), *data.get("feature", {}).items()]:
        for table in [feature, *feature.get("target", {}).values()]:
            for key in ("dependencies", "pypi-dependencies", "host-dependencies"):
                for spec in _named(table.get(key, {})):
                    yield spec._replace(group=(f"[{name}]",) if name else ())


def _pipfile(data: Any) -> Iterator[Spec]:
    python = data.get("requires", {})
    yield from _python(python.get("python_version") and f"{python['python_version']}.*")
    for section, table in data.items():
        if isinstance(table, dict) and section not in ("requires", "pipenv", "scripts"):
            yield from _named(table)


def _named(table: Any) -> Iterator[Spec]:
    """``{name: version}`` of Poetry, Pipenv and pixi. ``version`` may be in a separate table."""
    for name, value in table.items():
        for one in value if isinstance(value, list) else [value]:
            version = one.get("version") if isinstance(one, dict) else one
            if version is None:
                yield Spec(f"{name} @ {_UNKNOWN}")
            else:
                yield Spec(name + specifier(version, name), written=version)


# -------------------------------------------------------------------- JSON


def _pipfile_lock(source: Source) -> Iterator[Item]:
    data = _files.parse_json(source.text)
    lines = _files.lines(source.text)
    for section, table in data.items():
        begin = next((number for number, line in enumerate(lines, 1) if line.strip().startswith(f'"{section}":')), 1)
        for spec in _named(table) if section != "_meta" else ():
            yield spec._replace(after=begin, written="", is_locked=True)


def _notebook(source: Source) -> Iterator[Item]:
    """The packages that the cells install with ``!pip install`` and ``%pip install``."""
    data = _files.parse_json(source.text)
    cells = data.get("cells") or [cell for sheet in data.get("worksheets", ()) for cell in sheet["cells"]]
    here = Checkout(os.path.dirname(source.path) or ".", source.place)
    imports = False
    for cell in cells:
        text = cell.get("source", cell.get("input", ""))
        lines = _files.lines(text if isinstance(text, str) else "".join(text))
        if cell.get("cell_type") != "code":
            continue
        for _, line in logical_lines(lines):
            imports |= re.match(r"\s*(?:import|from)\s(?:pytorch_lightning|lightning(?!_))", line) is not None
            yield from uses_patches(line)
            if line.lstrip().startswith(("!", "%")):
                yield from read_commands(line.lstrip().lstrip("!%"), here, source.path, 1)
    if imports:
        yield Unclear(f"{source.path} imports Lightning and installs none: the environment it runs in decides", True)


# -------------------------------------------------------------------- YAML


def _yaml(source: Source) -> Iterator[Item]:
    """A file whose content tells its format: conda's environments and lock files, pixi.lock, and workflows."""
    text = source.text
    if text.startswith("# This file may be used to create an environment") or "@EXPLICIT" in text[:2000].split():
        for number, line in enumerate(_files.lines(text), 1):
            yield from _address(line, number)
        return
    data = _files.parse_yaml(text)
    data = data if isinstance(data, dict) else {}
    packages = data.get("package", data.get("packages"))
    if isinstance(data.get("dependencies"), list):
        for item in data["dependencies"]:
            yield from _conda(item, source)
    elif isinstance(packages, list):
        for package in packages:
            yield from _conda_lock(package)
    elif isinstance(data.get("jobs"), dict) or isinstance(data.get("runs"), dict):
        yield from _workflow(data, source)
    else:
        raise UsageError(
            f"{source.path} has no list of dependencies, as an environment of conda has, and no packages or jobs: it "
            "is no lock file and no workflow either."
        )


def _conda(item: Any, source: Source) -> Iterator[Item]:
    """An item of an environment: a package of conda, or a mapping with the packages of pip."""
    if not isinstance(item, dict):
        yield Spec(conda_spec(item), item.line, group=("conda",))
        return
    for line in item.get("pip") or ():
        yield from pip_line(line, line.line, source, ("pip",))


def _conda_lock(package: Any) -> Iterator[Spec]:
    """conda-lock.yml has names and versions, pixi.lock has them or only addresses."""
    if "name" in package and "version" in package:
        yield Spec(f"{package['name']}=={package['version']}", package["name"].line, is_locked=True)
    else:
        address = package.get("conda") or package.get("pypi") or package.get("url")
        if address:
            yield from _address(address, address.line)


def _address(address: str, line: int) -> Iterator[Spec]:
    file = address.partition("#")[0].strip().rpartition("/")[2]
    parts = file.rsplit("-", 2)
    if file.endswith((".conda", ".tar.bz2")) and len(parts) == 3:
        yield Spec(f"{parts[0]}=={parts[1]}", line, is_locked=True)
    elif file.endswith((".whl", ".tar.gz")):
        yield Spec(address, line, is_locked=True)


def _workflow(data: Any, source: Source) -> Iterator[Item]:
    """The `run` lines of a workflow of GitHub's, or of an action."""
    yield from uses_patches(source.text)
    here = Checkout(checkout_of(source.path) or os.path.dirname(source.path) or ".", source.place)
    for run, directory in dict.fromkeys(_runs(data)):  # an alias may repeat one many times
        here.directory = "/"
        here.directory = here.path(directory)
        for number, line in logical_lines(_files.lines(run), run.line - 1):
            if not line.lstrip().startswith("#"):
                yield from read_commands(re.sub(r"\$\{\{[^{}]*\}\}", "", line), here, source.path, number)


def _runs(data: Any) -> Iterator[Tuple[_files.YamlText, str]]:
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


def checkout_of(path: str) -> Optional[str]:
    """The checkout in which the commands of a workflow or an action run: the parent of the last ``.github``.

    Returns ``None`` for a file that is not below ``.github/workflows`` or ``.github/actions``.
    """
    for whole in (os.path.normpath(path), os.path.abspath(path)):
        parts = whole.split(os.sep)
        for index in reversed(range(len(parts) - 2)):
            if parts[index] == ".github" and parts[index + 1] in ("workflows", "actions"):
                return os.sep.join(parts[:index]) or (os.sep if os.path.isabs(whole) else ".")
    return None


_PARSED = (_files.MAX_PARSED, 16)
_JSON = (_files.MAX_BYTES, 1)
_FORMATS: List[Tuple[Any, ...]] = [
    (r"(?:uv|poetry|pdm)\.lock|pylock(?:\..*)?\.toml", _lock, *_PARSED),
    (r"pyproject\.toml", _pyproject, *_PARSED),
    (r"pixi\.toml", _toml_file(_pixi), *_PARSED),
    (r"pipfile\.lock", _pipfile_lock, *_JSON),
    (r"pipfile", _toml_file(_pipfile), *_PARSED),
    (r".*\.ya?ml|pixi\.lock|conda-.*\.lock", _yaml, *_PARSED),
    (r".*\.ipynb", _notebook, *_JSON),
    (r"(?:.*[.-])?(?:dockerfile|containerfile)(?:[.-].*)?", read_dockerfile, *_PARSED),
    (r".*\.(?:toml|lock|json|cfg|py|whl|gz|zip|md|rst|log|ini)", None, *_PARSED),
    (r".*", read_pip, *_PARSED),
]
"""File name patterns with their readers, limits in bytes, and costs per byte. The first match wins;
``None`` means unsupported. Files with other names are read as requirements files."""
