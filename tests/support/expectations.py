"""Read and check the rows of ``EXPECT`` in ``tests/patches/*/*.py``, see ``tests/scenarios/_expect.py``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Callable, Optional

from packaging.version import Version

from lightning_patches import patches as catalogue
from lightning_patches.engine import gate
from lightning_patches.fork import diffs
from tests import selection
from tests.support import variants
from tests.support.variants import PATCHES, Result, Variant, distribution_of

from _expect import Row, whole_run  # isort: skip  (tests.support.variants has put its directory on the path)

TIMEOUT = 300.0
Run = Callable[..., Result]


def has_rows(path: Path) -> bool:
    return "\nEXPECT = [" in path.read_text(encoding="utf-8")


def read(path: Path) -> list[Row]:
    """Execute a program up to ``EXPECT``, and return a row for each case."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    names = [ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else "" for node in tree.body]
    read = ast.Module(tree.body[: names.index("EXPECT") + 1], [])
    space: dict[str, Any] = {"__name__": path.stem}
    exec(compile(read, str(path), "exec", dont_inherit=True), space)
    title = re.split(r"\.(?: |$)", " ".join((ast.get_docstring(tree) or "").split()))[0]
    patch = selection.of_patch(path.relative_to(variants.ROOT).as_posix())
    assert catalogue.find(patch), f"the index has no patch {patch or path.stem}: run scripts/renew"
    rows = [
        replace(row, case=case, patch=patch, like=row.like and row.like.format(case))
        for row in space["EXPECT"]
        for case in ([row.case] if isinstance(row.case, str) else row.case)
    ]
    assert all(row.kind != "bug" or (row.stock, row.patched) != (None, None) for row in rows), (
        f"{patch}: a bug must state what stock or a patched run shows"
    )
    return [replace(row, what=row.what or title, program=row.program or path.stem) for row in rows]


@cache
def tables() -> dict[Path, list[Row]]:
    """Return the rows of all files."""
    return {path: read(path) for path in sorted(PATCHES.glob("*/[!_]*.py")) if has_rows(path)}


def shows(expected: Any, result: Result) -> bool:
    """True if the result is as expected."""
    if isinstance(expected, whole_run):
        return bool(expected.check(result))
    if isinstance(expected, str):
        return not result.ok and expected in result.output
    if isinstance(expected, list):
        return len(expected) == len(result.observations) and all(map(_has, result.observations, expected))
    first = result.observations[:1]
    return bool(first) and bool(_has(first[0], expected) if isinstance(expected, dict) else expected(first[0]))


def shows_bug(row: Row, result: Result) -> bool:
    return not is_right(row, result) if row.stock is None else shows(row.stock, result)


def is_right(row: Row, result: Result) -> bool:
    """True if a patched run shows what the row states."""
    return row.patched is None or shows(row.patched, result)


def _has(seen: dict[str, Any], expected: dict[str, Any]) -> bool:
    return all(name in seen and seen[name] == _plain(value) for name, value in expected.items())


def _plain(value: Any) -> Any:
    """Return a value as a program observes it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.hex() if isinstance(value, float) else value


def part(compare: Any) -> Callable[[list[dict[str, Any]]], Any]:
    """Return a function that selects the compared part of the observations."""
    if callable(compare):
        return compare  # type: ignore[no-any-return]
    if compare is None:
        return lambda observations: observations
    names = [compare] if isinstance(compare, str) else compare
    return lambda observations: [{name: rank[name] for name in names} for rank in observations]


def releases(row: Row) -> tuple[str, ...]:
    """Return the releases on which the row runs."""
    if row.on:
        return (row.on,) if isinstance(row.on, str) else tuple(row.on)
    return tuple(sorted(gate.affected_releases(diffs.record(row.patch)), key=Version)[-1:])


def run(row: Row, version: str, shim: bool, case: Optional[str] = None) -> Result:
    """Run a case on stock or with the shim."""
    return variants.run(
        row.program, Variant(distribution_of(version), version, shim), row.case if case is None else case,
        row.simulated_cuda, (row.toggle or (row.patch if row.alone else f"default,{row.patch}")) if shim else None,
        timeout=TIMEOUT, fresh=row.fresh, old_torch=row.old_torch,
    )  # fmt: skip


def problems(row: Row, version: str, run: Run = run) -> list[str]:
    """Return the deviations of a row that is no ``bug``; empty if there are none."""
    check = {"fixed": _fixed, "same": _same, "patched": _patched, "warns": _warns, "same_calls": _same_calls}[row.kind]
    return list(check(row, version, run))


def _fixed(row: Row, version: str, run: Run) -> Iterator[str]:
    stock, shim = run(row, version, False), run(row, version, True)
    expected = None
    if row.like is not None:
        expected = run(row, version, False, row.like)
    elif row.patched is None:
        expected = run(row, diffs.record(row.patch).fixed_in, False)
    compare = part(row.compare)
    if expected is not None and compare(shim.observations) != compare(expected.observations):
        yield f"the shim differs from the right run: {shim}\n{expected}"
    if row.stock is None and row.patched is None:
        if expected is not None and compare(stock.observations) == compare(expected.observations):
            yield f"stock does not show the bug: {stock}"
    elif not shows_bug(row, stock):
        yield f"stock does not show the bug: {stock}"
    elif shows_bug(row, shim):
        yield f"the shim shows the bug: {shim}"
    if shim.ok is isinstance(row.patched, str) or not is_right(row, shim):
        yield f"the shim is not right: {shim}"


def _same(row: Row, version: str, run: Run) -> Iterator[str]:
    stock, shim = run(row, version, False), run(row, version, True)
    fails, compare = isinstance(row.stock, str), part(row.compare)
    if row.stock is not None and not shows(row.stock, stock) or stock.ok is fails or not stock.observations:
        yield f"stock is not as expected: {stock}"
    if stock.ok is not shim.ok or compare(stock.observations) != compare(shim.observations):
        yield f"the shim differs from stock: {shim}\n{stock}"


def _patched(row: Row, version: str, run: Run) -> Iterator[str]:
    shim = run(row, version, True)
    ends = isinstance(row.patched, whole_run) or shim.ok is not isinstance(row.patched, str)
    if not ends or not shows(row.patched, shim):
        yield f"the shim is not right: {shim}"


def _warns(row: Row, version: str, run: Run) -> Iterator[str]:
    stock, shim = run(row, version, False), run(row, version, True)
    if row.stock is not None and not shows(row.stock, stock):
        yield f"stock does not show the bug: {stock}"
    first, *others = [rank.pop("warnings") for rank in shim.observations] or [[]]
    if len(first) != 1 or row.warning not in first[0] or any(others):
        yield f"rank zero must have the only warning: {first}, {others}"
    if any(rank.pop("warnings") for rank in stock.observations):
        yield f"stock has warnings of the package: {stock}"
    if not (stock.ok and shim.ok and stock.observations == shim.observations):
        yield f"the shim differs from stock: {shim}\n{stock}"


def _same_calls(row: Row, version: str, run: Run) -> Iterator[str]:
    from tests.differential.trial import difference

    program, _, kind = row.case.partition(": ")
    yield from difference(program, version, row.patch, kind or "plain")
