"""Read lock files: uv.lock, poetry.lock and others in TOML, Pipfile.lock, conda-lock.yml, pixi.lock, and conda's
explicit lists."""

from __future__ import annotations

import re
from typing import Any, Iterator

from lightning_patches.cli import _files
from lightning_patches.cli.audit.sources.items import Item, Source, Spec
from lightning_patches.cli.audit.sources.tables import UNKNOWN_ADDRESS, python_spec, versions_by_name


def read_toml_lock(source: Source) -> Iterator[Item]:
    """Read uv.lock, poetry.lock, pdm.lock or pylock.toml (PEP 751)."""
    data = _files.parse_toml(source.text)
    metadata = data.get("metadata", {})
    python = data.get("requires-python") or metadata.get("requires_python")
    yield from python_spec(python or metadata.get("python-versions"))
    lines = _files.lines(source.text)
    tables = [number for number, line in enumerate(lines, 1) if re.match(r"\s*\[\[\s*packages?\s*\]\]", line)]
    packages = data.get("package", data.get("packages", ()))
    after = tables if len(tables) == len(packages) else [1] * len(packages)
    for package, line in zip(packages, after):
        version = package.get("version")
        spec = f"{package['name']}=={version}" if version is not None else f"{package['name']} @ {UNKNOWN_ADDRESS}"
        yield Spec(spec, after=line, is_locked=True)


def read_pipfile_lock(source: Source) -> Iterator[Item]:
    data = _files.parse_json(source.text)
    lines = _files.lines(source.text)
    for section, table in data.items():
        first = next((number for number, line in enumerate(lines, 1) if line.strip().startswith(f'"{section}":')), 1)
        for spec in versions_by_name(table) if section != "_meta" else ():
            yield spec._replace(after=first, written="", is_locked=True)


def read_packages(packages: list[Any]) -> Iterator[Spec]:
    """Read the packages of conda-lock.yml or pixi.lock. A package of pixi.lock may have only a URL."""
    for package in packages:
        if "name" in package and "version" in package:
            yield Spec(f"{package['name']}=={package['version']}", package["name"].line, is_locked=True)
            continue
        address = package.get("conda") or package.get("pypi") or package.get("url")
        if address:
            yield from _read_address(address, address.line)


def is_explicit(text: str) -> bool:
    """True for a list that ``conda list --explicit`` or conda-lock writes."""
    return text.startswith("# This file may be used to create an environment") or "@EXPLICIT" in text[:2000].split()


def read_explicit(source: Source) -> Iterator[Item]:
    """Read an explicit list of conda, which has a URL in each line."""
    for number, line in enumerate(_files.lines(source.text), 1):
        yield from _read_address(line, number)


def _read_address(address: str, line: int) -> Iterator[Spec]:
    file = address.partition("#")[0].strip().rpartition("/")[2]
    parts = file.rsplit("-", 2)
    if file.endswith((".conda", ".tar.bz2")) and len(parts) == 3:
        yield Spec(f"{parts[0]}=={parts[1]}", line, is_locked=True)
    elif file.endswith((".whl", ".tar.gz")):
        yield Spec(address, line, is_locked=True)
