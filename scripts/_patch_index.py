"""Generate ``lightning_patches/patches/_index.py``: the patches as the start of a program needs them."""

from __future__ import annotations

import heapq
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Iterable

from lightning_patches import patches as catalogue
from lightning_patches.patch import Impact, Patch, Upstream, no_code

HOUSE = Path(catalogue.__file__).parent
DATA = HOUSE / "_index.py"
HEAD = '''\
"""The patches without code: titles, and what selects and decides on them. Written by ``scripts/renew``."""

# fmt: off
# ruff: noqa: E501
from lightning_patches.patch import Effect, Impact, Need, Patch, Target, Upstream, no_code

NO_IMPACT = Impact("")
INDEX = (
'''


def text() -> str:
    """Return the text of the index, and use it in this process."""
    made = HEAD + "".join(f"    {literal(record)},\n" for record in records()) + ")\n"
    module = ModuleType("lightning_patches.patches._index")
    exec(made, vars(module))
    sys.modules[module.__name__] = module
    catalogue.all_patches.cache_clear()
    return made


def records() -> list[Patch]:
    """Import all patches, and return their records for the index, in the order of the layers."""
    found = []
    for path in sorted(HOUSE.glob("*/[!_]*.py")):
        module = importlib.import_module(f"lightning_patches.patches.{path.parent.name}.{path.stem}")
        title = " ".join((module.__doc__ or "").partition("\n\n")[0].split()).rstrip(".")
        names = {"name": path.stem.replace("_", "-"), "title": title, "module": module.__name__}
        found.append(module.PATCH._replace(**names))
    below: dict[str, set[str]] = {}
    ordered = layered(found)
    for patch in ordered:
        below[patch.name] = {*patch.after}.union(*(below[name] for name in patch.after))
    return [_without_code(patch)._replace(below=tuple(sorted(below[patch.name]))) for patch in ordered]


def layered(patches: Iterable[Patch]) -> tuple[Patch, ...]:
    """Sort patches by name, but each one after the patches in its ``after``.

    Raises:
        ValueError: two patches have the same name, or ``after`` names an unknown patch or forms a cycle.
    """
    given = list(patches)
    names = [patch.name for patch in given]
    if len(set(names)) != len(names):
        raise ValueError(f"two patches share a name: {sorted({name for name in names if names.count(name) > 1})}")
    left = {patch.name: patch for patch in given}
    above: dict[str, list[str]] = {name: [] for name in names}
    for patch in given:
        for below in patch.after:
            if below not in left:
                raise ValueError(f"{patch.name} must come after {below}, which does not exist")
            above[below].append(patch.name)
    waits = {patch.name: len(patch.after) for patch in given}
    free = [name for name in names if not waits[name]]
    heapq.heapify(free)
    ordered: list[Patch] = []
    while free:
        ordered.append(left.pop(heapq.heappop(free)))
        for name in above[ordered[-1].name]:
            waits[name] -= 1
            if not waits[name]:
                heapq.heappush(free, name)
    if left:
        raise ValueError(f"these patches come after one another: {sorted(left)}")
    return tuple(ordered)


def _without_code(patch: Patch) -> Patch:
    """Return a patch without code and texts."""
    return Patch(
        name=patch.name,
        title=patch.title,
        group=patch.group,
        affected=patch.affected,
        targets=tuple(target._replace(build=no_code, stock=()) for target in patch.targets),
        impact=Impact(""),
        upstream=Upstream(
            patch.upstream.issues,
            patch.upstream.pull_requests,
            fixed_in=patch.fixed_in,
            proposed=patch.upstream.proposed,
        ),
        changes_results=patch.changes_results,
        opt_in=patch.opt_in,
        witnesses=patch.witnesses,
        needs=patch.needs,
        probe=no_code if patch.probe is not None else None,
        module=patch.module,
    )


def literal(value: Any) -> str:
    """Python for a value in the index."""
    if value == Impact(""):
        return "NO_IMPACT"
    if value is no_code:
        return "no_code"
    if hasattr(value, "_asdict"):
        stated = {name: one for name, one in value._asdict().items() if one != value._field_defaults.get(name, ...)}
        return f"{type(value).__name__}({', '.join(f'{name}={literal(one)}' for name, one in stated.items())})"
    if isinstance(value, tuple):
        return f"({''.join(f'{literal(one)}, ' for one in value).rstrip(' ')})"
    return repr(value)
