"""Runs upstream's test files for ``upstream_tests``, each in a process forked from this one.

Importing torch and Lightning takes longer than most test files, so it is done once for each release and arm. Every file
still gets a process of its own, whose end or hang concerns no other.

Requests come as JSON lines on stdin, one at a time; outcomes go as JSON lines to stdout as soon as they are known, and
after them one line with ``ended``. Given arguments, it runs pytest with these: that is how a rank is started by
Lightning, which repeats the command of the main process. In the processes that multiprocessing spawns this file is
imported as the main module, and brings the shim there as well, as a user's own program would.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("UPSTREAM_TESTS_SHIM") == "1":
    import lightning_patches  # noqa: F401

if __name__ == "__main__":
    import gc
    import importlib
    import json
    import select
    import signal
    import time
    from typing import Any, BinaryIO, Optional

    import pytest

    COSTLY = ("torch._dynamo", "torch.distributed.fsdp")
    """What the first optimizer or strategy imports."""
    OTHER_STEPS = 120.0
    """Seconds for what is no test of its own: collecting a file, tearing down a module."""

    class Recorder:
        """Reports the outcome of each test, and leaves out those that are not wanted."""

        def __init__(self, descriptor: int, done: list[str], only: Optional[list[str]]) -> None:
            self._descriptor = descriptor
            self._done = set(done)
            self._only = only
            self._reports: list[pytest.TestReport] = []

        def _tell(self, **item: Any) -> None:
            os.write(self._descriptor, json.dumps(item).encode() + b"\n")

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
            wanted = [
                item
                for item in items
                if item.nodeid not in self._done and (self._only is None or item.nodeid in self._only)
            ]
            config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
            items[:] = wanted

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.outcome != "passed" and report.nodeid not in self._done:
                self._tell(test=report.nodeid, outcome=report.outcome, seconds=0.0, why=why(report))

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            self._reports = []
            self._tell(started=nodeid)

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.outcome == "rerun":  # type: ignore[comparison-overlap]  # pytest-rerunfailures: it is tried again
                self._reports = []
            else:
                self._reports.append(report)

        def pytest_runtest_logfinish(self, nodeid: str) -> None:
            if self._reports:
                worst = min(self._reports, key=lambda r: ("failed", "skipped", "passed").index(r.outcome))
                outcome = "xfailed" if hasattr(worst, "wasxfail") and worst.outcome == "skipped" else worst.outcome
                seconds = round(sum(report.duration for report in self._reports), 2)
                self._tell(test=nodeid, outcome=outcome, seconds=seconds, why=why(worst))

    def why(report: Any) -> str:
        """What was raised, or why the test was skipped, in one line; "" if it passed."""
        told = report.longrepr
        if not told:
            return ""
        if isinstance(told, tuple):
            told = told[2].removeprefix("Skipped: ")
        crash = getattr(told, "reprcrash", None)
        lines = str(crash.message if crash else told).strip().splitlines()
        return (lines[0] if crash or report.outcome == "skipped" else lines[-1])[:300] if lines else ""

    def execute(request: dict[str, Any], descriptor: int) -> int:
        """In the forked process: run pytest."""
        os.setsid()
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(request["variables"])
        os.chdir(request["cwd"])
        sys.argv[1:] = request["arguments"]
        status = int(pytest.main(request["arguments"], [Recorder(descriptor, request["done"], request["only"])]))
        sys.stdout.flush()
        sys.stderr.flush()
        return status

    def run(request: dict[str, Any], answers: BinaryIO) -> None:
        """Fork, pass on what the tests tell, end what takes longer than ``limit`` seconds."""
        ours, theirs = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(ours)
            status = 1
            try:
                status = execute(request, theirs)
            finally:
                os._exit(status)  # threads and exit handlers that tests left behind are of no interest
        os.close(theirs)
        os.set_blocking(ours, False)
        limit, running, rest, ended = float(request["limit"]), "", b"", ""
        deadline = time.monotonic() + limit + OTHER_STEPS
        while True:
            readable = select.select([ours, 0], [], [], 0.5)[0]
            if 0 in readable:  # whoever asked is gone
                os.killpg(process, signal.SIGKILL)
                sys.exit(1)
            over, status = os.waitpid(process, os.WNOHANG) if not ended else (0, 0)
            while True:
                try:
                    data = os.read(ours, 1 << 16)
                except BlockingIOError:
                    break
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    item = json.loads(line)
                    running = item.get("started", "")
                    deadline = time.monotonic() + limit + (0 if running else OTHER_STEPS)
                    if not running:
                        answers.write(line + b"\n")
                        answers.flush()
            if ended:
                break
            if over:
                code = os.waitstatus_to_exitcode(status)
                ended = f"killed by signal {-code}" if code < 0 else f"exit status {code}"
            elif time.monotonic() > deadline:
                ended = "timeout"
            if ended:
                try:
                    os.killpg(process, signal.SIGKILL)  # with all that the tests started
                except ProcessLookupError:
                    pass
                if ended == "timeout":
                    os.waitpid(process, 0)
        os.close(ours)
        if running:
            outcome = ended if ended == "timeout" else "crashed"
            item = {"test": running, "outcome": outcome, "seconds": limit, "why": ended}
            answers.write(json.dumps(item).encode() + b"\n")
        answers.write(json.dumps({"ended": ended, "running": running}).encode() + b"\n")
        answers.flush()

    def serve() -> None:
        with os.fdopen(os.dup(1), "wb") as answers:
            os.dup2(2, 1)
            for name in os.environ["UPSTREAM_TESTS_PRELOAD"].split():
                importlib.import_module(name)
            for name in COSTLY if "torch" in sys.modules else ():
                importlib.import_module(name)
            gc.freeze()  # the collector need not look at what is here in each child
            answers.write(json.dumps({"ended": "ready"}).encode() + b"\n")
            answers.flush()
            for line in sys.stdin:
                run(json.loads(line), answers)

    if len(sys.argv) > 1:
        sys.exit(pytest.main(sys.argv[1:]))
    serve()
