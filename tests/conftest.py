"""Put the repository on ``sys.path``, so that tests import ``tests.support`` and the package of this checkout. Choose
tests for ``scripts/test``."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests activate patches explicitly.
os.environ.setdefault("_LIGHTNING_PATCHES_IMPORT_ONLY", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lightning-patches", "selection of tests; see tests/README.md")
    group.addoption("--soon", action="store_true", help="the selection of scripts/test")
    group.addoption("--patch", action="append", metavar="NAME", help="tests of this patch; may be repeated")
    group.addoption("--rest", type=int, metavar="TURN", help="all other tests, in an order that depends on this number")
    group.addoption("--until", type=float, metavar="TIME", help="start no test after this time, in seconds since 1970")


def pytest_collection_modifyitems(config: pytest.Config, items: list) -> None:
    """Keep the tests of a patch on one worker, where they share the runs of their variants."""
    from tests import selection

    for item in items:
        if item.path.parents[1] == ROOT / "tests" / "patches":
            item.add_marker(pytest.mark.xdist_group(selection.of_patch(item.path.relative_to(ROOT).as_posix())))
    wants_soon, turn, patches = config.getoption("soon"), config.getoption("rest"), config.getoption("patch")
    if not wants_soon and turn is None and not patches:
        return
    chosen = selection.soon(items) if not patches else selection.of_patches(items, patches)
    wanted = wants_soon or bool(patches)
    config.hook.pytest_deselected(items=[item for item, is_chosen in zip(items, chosen) if is_chosen is not wanted])
    items[:] = [item for item, is_chosen in zip(items, chosen) if is_chosen is wanted]
    if turn is not None:
        items[:] = selection.rotated(items, turn)


class Progress:
    """Print every minute how many tests have ended, and how long the others will take."""

    def __init__(self, session: pytest.Session, terminal: pytest.TerminalReporter) -> None:
        self.session, self.terminal = session, terminal
        self.ended, self.began = 0, time.monotonic()
        self.printed = self.began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.ended += report.when == "teardown"
        now, total = time.monotonic(), self.session.testscollected
        if now - self.printed > 60 and self.ended:
            minutes = (total - self.ended) * (now - self.began) / self.ended / 60
            self.terminal.write_line(f"  {self.ended} of {total} tests, about {minutes:.0f} minutes left")
            self.printed = now


def pytest_sessionstart(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")  # None in the workers of xdist
    if terminal is not None:
        session.config.pluginmanager.register(Progress(session, terminal))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    until = item.config.getoption("until")
    if until is not None and time.time() > until:
        pytest.skip("not started before the end of --until")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Print, below pytest's last line, how many tests were skipped because there are no simulated GPUs."""
    yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")  # None in the workers of xdist
    skipped = terminal.stats.get("skipped", []) if terminal else []
    if not skipped:
        return
    from tests.support import variants

    reason = variants.no_simulated_cuda()
    folders = Counter(
        "/".join(report.nodeid.split("/")[:2]) for report in skipped if reason and reason in report.longrepr[2]
    )
    if folders and terminal is not None:
        counts = ", ".join(f"{count} in {folder}" for folder, count in sorted(folders.items()))
        terminal.write_line(f"Skipped tests: {counts}. {reason}")
