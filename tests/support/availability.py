"""List the packages that Lightning and its requirements look for, and what they find in an environment.

Run as a program, this file answers questions: ``python -I -S availability.py DIRECTORY...`` imports from these
directories only, reads a JSON list of questions, and prints the answers.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

CALLS = {
    *("RequirementCache", "ModuleAvailableCache", "_RequirementAvailable", "compare_version", "_compare_version"),
    *("package_available", "module_available", "_package_available", "_module_available", "lazy_import"),
    *("find_spec", "import_module", "version", "distribution", "requires", "entry_points", "iter_entry_points"),
}
"""Functions and classes that look for a package, a module or an entry point."""
ASKS = re.compile("|".join(rf"\b{name}\(" for name in sorted(CALLS)))
IMPORTS = re.compile(r"^\s*(?:from\s+(\w+)|import\s+(\w[\w., ]*))", re.MULTILINE)


def questions(*packages: Path) -> set[str]:
    """Return everything that the source of packages imports (``"import rich"``) or looks for (``"rich>=10.2.2"``)."""
    found: set[str] = set()
    for path in (path for package in packages for path in package.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for first, others in IMPORTS.findall(text):
            found.update(f"import {name}" for name in re.findall(r"(?:^|,\s*)(\w+)", first or others))
        if ASKS.search(text):
            calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
            for call in (call for call in calls if ast.unparse(call.func).rpartition(".")[2] in CALLS):
                values = [*call.args, *(keyword.value for keyword in call.keywords)]
                found.update(v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str))
    return {text for text in found if re.match(r"[A-Za-z_]", text)}


def link_installed(requirements: Iterable[str], directory: Path) -> None:
    """Link distributions of this Python, and everything that they require, into ``directory``."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    waiting, seen = [Requirement(text) for text in requirements], set()
    while waiting:
        requirement = waiting.pop()
        try:
            distribution = importlib.metadata.distribution(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (directory / top).exists():
                (directory / top).symlink_to(distribution.locate_file(top))
        extras = {"", *requirement.extras}
        needed = map(Requirement, distribution.requires or ())
        waiting += [one for one in needed if not one.marker or any(one.marker.evaluate({"extra": e}) for e in extras)]


def _answer(question: str) -> Any:
    from lightning_utilities.core.imports import RequirementCache, package_available

    name = question.partition("import ")[2]
    if name:
        return _or_error(package_available, name)
    name = re.match(r"[\w-]+", question)[0]  # type: ignore[index]
    if question.startswith(f"{name}."):  # a module: a search for it would import the package
        return _or_error(package_available, name)
    available = _or_error(lambda text: bool(RequirementCache(text)), question)
    return [available, _or_error(package_available, name), _or_error(importlib.metadata.version, name)]


def _or_error(ask: Callable[[str], Any], text: str) -> Any:
    try:
        return ask(text)
    except Exception as error:
        return type(error).__name__


if __name__ == "__main__":
    sys.path += sys.argv[1:]
    answers = {question: _answer(question) for question in json.load(sys.stdin)}
    points = {str(point) for one in importlib.metadata.distributions() for point in one.entry_points}
    json.dump({"answers": answers, "entry points": sorted(points)}, sys.stdout)
