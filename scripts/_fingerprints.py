"""``lightning_patches/engine/_fingerprints.py``, from the wheels of all locked releases."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any, Callable, Optional

import _releases
from packaging.version import Version

from lightning_patches import patches as catalogue
from lightning_patches.engine import distributions, fingerprints, gate

DATA = Path(fingerprints.__file__).with_name("_fingerprints.py")
HEAD = '''"""Fingerprints of the files and functions that patches change. Written by ``scripts/renew``."""

# fmt: off
# ruff: noqa: E501
from typing import Any, Dict

DATA: Dict[str, Any] = {
'''
DECORATORS = {
    "classmethod", "contextmanager", "disable", "inference_mode", "lru_cache", "no_grad", "override", "property",
    "rank_zero_only", "setter", "staticmethod",
}  # fmt: skip
"""Decorators below which the engine recognizes a function, since they set ``__wrapped__`` or return the function."""


def build(afresh: bool) -> dict[str, Any]:
    """The table of every location in the catalogue, over every release in both namespaces.

    Args:
        afresh: read all releases again. Otherwise only read modules with new locations, since releases do not change.
    """
    patches = catalogue.all_patches()
    locations = sorted({location for patch in patches for location in patch.locations})
    older = {location for patch in patches if patch.affected_old for location in patch.locations}
    modules = sorted({location.partition(":")[0] for location in locations})
    releases, older_releases = _releases.versions("lightning"), _releases.older_versions()
    assert releases == _releases.versions("pytorch-lightning"), "the two distributions differ in their releases"
    known = runpy.run_path(str(DATA))["DATA"] if DATA.exists() and not afresh else {}
    if (known.get("releases"), known.get("older_releases")) != (releases, older_releases):
        known = {"files": {}, "functions": {}}

    def is_known(location: str) -> bool:
        row = known["functions"].get(location)
        return bool(row) and _has_older(row, len(releases)) is (location in older)

    unknown = {location.partition(":")[0] for location in locations if not is_known(location)}
    with_older = {location.partition(":")[0] for location in older}
    for module, row in known["files"].get("pytorch_lightning", {}).items():
        if _has_older(row, len(releases)) is not (module in with_older):
            unknown.add(module)
    read = _read([module for module in modules if module in unknown], locations, older)
    files = {
        namespace: {
            module: read[0][namespace][module] if module in unknown else known["files"][namespace][module]
            for module in modules
        }
        for namespace in distributions.PARTS
    }
    functions = {
        location: read[1][location] if location.partition(":")[0] in unknown else known["functions"][location]
        for location in locations
    }
    return {"releases": releases, "older_releases": older_releases, "files": files, "functions": functions}


def refused() -> list[str]:
    """Return the targets that the engine will refuse because of a decorator, on the newest release of each."""
    newest = ((patch, max(gate.affected_releases(patch), key=Version, default="")) for patch in catalogue.all_patches())
    targets = (
        (version, target.location, patch.name) for patch, version in newest if version for target in patch.targets
    )
    found = []
    for version, location, patch in sorted(targets):
        module, _, attribute = location.partition(":")
        stem = distributions.module_name("pytorch_lightning", module).replace(".", "/")
        read = _reader(version)
        source = fingerprints.function_source(read(f"{stem}.py") or read(f"{stem}/__init__.py") or "", attribute)
        definition: Any = ast.parse(textwrap.dedent(source)).body[0] if source else None
        for decorator in getattr(definition, "decorator_list", ()):
            name = ast.unparse(decorator).partition("(")[0]
            if name.rpartition(".")[2] not in DECORATORS:
                found.append(
                    f"{patch}: {location} has the decorator {name}, and the engine will take the decorated function "
                    "for other code: patch a function that it calls"
                )
    return found


@cache
def _reader(version: str) -> Callable[[str], Optional[str]]:
    return _releases.reader("pytorch-lightning", version)


def _read(modules: list[str], locations: list[str], older: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return digests of modules by namespace and module, and of functions, in all releases."""
    releases, older_releases = _releases.versions("lightning"), _releases.older_versions()
    files: dict[str, Any] = {namespace: {module: {} for module in modules} for namespace in distributions.PARTS}
    functions: dict[str, Any] = {location: {} for location in locations if location.partition(":")[0] in modules}
    digests: dict[tuple[str, str], Any] = {}  # many releases ship the same file: parse each once
    for index, version in enumerate([*releases, *older_releases] if modules else []):
        is_old = version in older_releases
        for distribution, namespace in list(_releases.NAMESPACES.items())[is_old:]:  # old ones: only the second
            read = _releases.reader(distribution, version)
            for location in functions:
                module, _, attribute = location.partition(":")
                if module.partition(".")[0] not in distributions.PARTS[namespace] or (is_old and location not in older):
                    continue
                stem = distributions.module_name(namespace, module).replace(".", "/")
                found = [text for text in (read(f"{stem}.py"), read(f"{stem}/__init__.py")) if text is not None]
                content = found[0] if found else ""
                if found:
                    files[namespace][module].setdefault(fingerprints.file_digest(content.encode()), set()).add(index)
                if (location, content) not in digests:
                    digests[location, content] = fingerprints.function_digest(content, attribute)
                functions[location].setdefault(digests[location, content] or fingerprints.ABSENT, set()).add(index)
        if sys.stderr.isatty():
            count = len(releases) + len(older_releases)
            end = "\n" if index + 1 == count else ""
            print(f"\r{index + 1}/{count} {version}   ", end=end, file=sys.stderr, flush=True)
    rows = {n: {m: _row(table) for m, table in of.items()} for n, of in files.items()}
    return rows, {location: _row(table) for location, table in functions.items()}


def _row(table: dict[str, set[int]]) -> str:
    """Sets of release indices as a text: see :func:`fingerprints.numbers`."""
    row = []
    for digest, indices in sorted(table.items(), key=lambda item: min(item[1])):
        runs: list[list[int]] = []
        for index in sorted(indices):
            if runs and runs[-1][1] == index - 1:
                runs[-1][1] = index
            else:
                runs.append([index, index])
        row.append(" ".join([digest, *(f"{first}-{last}" for first, last in runs)]))
    return ", ".join(row)


def _has_older(row: str, first: int) -> bool:
    return any(int(last) >= first for last in re.findall(r"-(\d+)", row))


def text(afresh: bool = False) -> str:
    """Python with one module or location to a line, so that a diff shows which ones changed."""
    data = build(afresh)
    files = "".join(f"        {namespace!r}: {_rows(table, 12)},\n" for namespace, table in data["files"].items())
    return (
        f"{HEAD}"
        f"    'releases': {data['releases']!r},\n"
        f"    'older_releases': {data['older_releases']!r},\n"
        f"    'files': {{\n{files}    }},\n"
        f"    'functions': {_rows(data['functions'], 8)},\n"
        "}\n"
    )


def _rows(table: dict[str, str], indent: int) -> str:
    rows = "".join(f"{' ' * indent}{name!r}: {row!r},\n" for name, row in table.items())
    return f"{{\n{rows}{' ' * (indent - 4)}}}"
