"""Collect the rows of ``EXPECT`` in the programs of the patches, see ``tests/scenarios/_expect.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from lightning_patches import patches as catalogue
from tests.equivalence import boundaries
from tests.equivalence.boundaries import Boundary
from tests.support import expectations, old_torch


class Check(pytest.Item):
    """A row on one release."""

    boundary: Optional[Boundary] = None
    check: Callable[[], list[str]]
    old_torch = False

    def runtest(self) -> None:
        if self.old_torch and old_torch.find().python is None:
            pytest.skip(old_torch.find().reason)
        if problems := self.check():
            pytest.fail("\n".join(problems), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class Table(pytest.File):
    """A program; its rows are tests."""

    def collect(self) -> Iterator[Check]:
        for row in expectations.read(self.path) if expectations.has_rows(self.path) else ():
            if row.kind == "bug":
                yield from self._bug(row)
                continue
            for version in expectations.releases(row):
                check = lambda row=row, version=version: expectations.problems(row, version)  # noqa: E731
                item = self._item(f"{row.kind}: {row.what}", check, row.case, version, row.toggle)
                item.old_torch = row.old_torch
                yield item

    def _bug(self, row: Any) -> Iterator[Check]:
        """Yield the boundaries, and a run with all default patches on the newest affected release."""
        for one in boundaries.boundaries(row):
            place = f"{one.distribution} {one.version} {one.role}"
            item = self._item(f"bug: {row.what}", lambda one=one: boundaries.problems(one), row.case, place)
            item.boundary, item.old_torch = one, row.old_torch
            yield item
        newest = boundaries.newest_affected(row)
        if catalogue.find(row.patch)[0].default and newest is not None and not row.old_torch:
            check = lambda: boundaries.problems_by_default(newest)  # noqa: E731
            yield self._item(f"bug: {row.what}", check, row.case, newest.version, "default set")

    def _item(self, name: str, check: Callable[[], list[str]], *parts: str) -> Check:
        item: Check = Check.from_parent(self, name=f"{name} [{', '.join(filter(None, parts))}]")
        item.check = check
        if name.startswith("bug: "):
            item.add_marker(pytest.mark.timeout(900))
            item.add_marker(pytest.mark.equivalence)
        return item


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Optional[Table]:
    """Collect programs, which pytest cannot import; ``python_files`` in setup.cfg names them."""
    is_test = module_path.name.startswith("test_")
    return None if is_test else Table.from_parent(parent, path=module_path)  # type: ignore[no-any-return]
