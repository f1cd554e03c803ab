"""Read TOML files with requirements: pyproject.toml, pixi.toml and Pipfile."""

from __future__ import annotations

from typing import Any, Iterator

from lightning_patches.cli import _files
from lightning_patches.cli.audit.requirements import specifier
from lightning_patches.cli.audit.sources.items import PROJECT_FILES, Gap, Include, Item, Kind, Locks, Source, Spec

UNKNOWN_ADDRESS = "https://unknown.invalid"
"""The URL of a requirement that is installed from a directory or repository, and so has no known release."""


def read_pyproject(source: Source) -> Iterator[Item]:
    """Read pyproject.toml, including the tables of Poetry, PDM, uv and pixi."""
    data = _files.parse_toml(source.text)
    project, tool = data.get("project", {}), data.get("tool", {})
    yield from python_spec(project.get("requires-python"))
    yield from _texts(project.get("dependencies", ()))
    extras = [*project.get("optional-dependencies", {}).items(), *data.get("dependency-groups", {}).items()]
    for name, items in extras:
        yield from _texts((item for item in items if isinstance(item, str)), f"[{name}]")
    development = [
        *tool.get("pdm", {}).get("dev-dependencies", {}).values(),
        tool.get("uv", {}).get("dev-dependencies"),
    ]
    for items in development:
        yield from _texts(item for item in items or () if isinstance(item, str))
    if "poetry" in tool or "pdm" in tool:
        yield Locks()
    poetry = tool.get("poetry", {})
    tables = [poetry.get("dependencies", {}), poetry.get("dev-dependencies", {})]
    tables += [group.get("dependencies", {}) for group in poetry.get("group", {}).values()]
    for table in tables:
        yield from versions_by_name(table)
    yield from _pixi_tables(tool.get("pixi", {}))
    files = tool.get("setuptools", {}).get("dynamic", {}).get("dependencies", {}).get("file", ())
    for name in [files] if isinstance(files, str) else files:
        yield Include(source.beside(name), source.place, is_requirements_file=True)
    if not files and "dependencies" in project.get("dynamic", ()):
        yield from (
            Include(path, source.place) for path in source.place.existing(source.beside("."), PROJECT_FILES[1:])
        )
        yield Gap(source.path, "leaves its dependencies to the build (dynamic)", Kind.FOREIGN)


def read_pixi(source: Source) -> Iterator[Item]:
    yield from _pixi_tables(_files.parse_toml(source.text))


def read_pipfile(source: Source) -> Iterator[Item]:
    data = _files.parse_toml(source.text)
    python = data.get("requires", {})
    yield from python_spec(python.get("python_version") and f"{python['python_version']}.*")
    for section, table in data.items():
        if isinstance(table, dict) and section not in ("requires", "pipenv", "scripts"):
            yield from versions_by_name(table)


def python_spec(spec: Any) -> Iterator[Spec]:
    """Yield a requirement of Python if ``spec`` is a text."""
    if isinstance(spec, str):
        yield Spec(f"python{specifier(spec, 'python')}")


def versions_by_name(table: Any) -> Iterator[Spec]:
    """Read ``{name: version}`` or ``{name: {version: ...}}``, the format of Poetry, Pipenv and pixi."""
    for name, value in table.items():
        for one in value if isinstance(value, list) else [value]:
            version = one.get("version") if isinstance(one, dict) else one
            if version is None:
                yield Spec(f"{name} @ {UNKNOWN_ADDRESS}")
            else:
                yield Spec(name + specifier(version, name), written=version)


def _texts(texts: Any, extra: str = "") -> Iterator[Spec]:
    for text in texts:
        if not isinstance(text, str):
            raise TypeError
        yield Spec(text, written=text, group=(extra,) if extra else ())


def _pixi_tables(data: Any) -> Iterator[Spec]:
    """Read the tables of pixi for conda and pip, including those of features and platforms."""
    for name, feature in [("", data), *data.get("feature", {}).items()]:
        for table in [feature, *feature.get("target", {}).values()]:
            for key in ("dependencies", "pypi-dependencies", "host-dependencies"):
                for spec in versions_by_name(table.get(key, {})):
                    yield spec._replace(group=(f"[{name}]",) if name else ())
