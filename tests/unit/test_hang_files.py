"""Reports in files: files of other users are not touched, and nothing blocks."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import time
from pathlib import Path

import pytest

from lightning_patches.ranks import _node, _processes
from lightning_patches.ranks.hang import _files, _registry, _report, _viewer


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(_files.VARIABLE, str(tmp_path / "hangs"))
    return Path(_files.place())


def test_reports_are_appended_to_two_files(place: Path) -> None:
    for number in (1, 2):
        assert _files.save(str(place), f"report {number}", {"verdict": f"report {number}", "ranks": []}) == ""
    assert place.with_name(f"{place.name}.txt").read_text().split("\n\n")[:2] == [
        "lightning_patches: report 1",
        "lightning_patches: report 2",
    ]
    lines = place.with_name(f"{place.name}.jsonl").read_text().splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["report 1", "report 2"]


def test_reports_have_a_total_limit(place, monkeypatch, capfd):
    monkeypatch.setattr(_files, "MOST", 1 << 20)
    other = place.with_name("hang-other-1.txt")
    reports = 0
    while "1 MiB" not in capfd.readouterr().err:
        _report.print_and_write("rank 1 is missing", "x" * 150_000, {"verdict": "rank 1 is missing", "ranks": []})
        other.write_text("y" * 200_000)
        reports += 1
        assert reports < 10
    assert reports > 3
    assert sum(path.stat().st_size for path in place.parent.iterdir()) <= 1 << 20


def test_oldest_reports_are_removed_for_a_new_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_node, "BASES", (str(tmp_path),))
    monkeypatch.setattr(_files, "MOST", 4_000)
    reports = Path(_node.directory(_node.REPORTS))
    now = time.time()
    for number in range(4):
        (reports / f"hang-{number}.txt").write_text("x" * 900)
        os.utime(reports / f"hang-{number}.txt", (now - number, now - number))
    _registry.Job("key").sweep()
    assert sorted(path.name for path in reports.iterdir()) == ["hang-0.txt", "hang-1.txt"]


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_files_of_other_users_are_not_touched(kind: str, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The report is printed before any file is written."""
    place.parent.mkdir()
    victim = place.parent / "victim"
    victim.write_text("as it was")
    path = place.with_name(f"{place.name}.txt")
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    _report.print_and_write("rank 1 is missing", "rank 1 is missing", {"verdict": "rank 1 is missing", "ranks": []})
    printed = capfd.readouterr().err
    assert printed.index("rank 1 is missing") < printed.index(f"the report can't be written to {place.parent}:"), (
        printed
    )
    assert victim.read_text() == "as it was"


def test_directory_that_never_answers_is_skipped(place, tmp_path, monkeypatch, capfd):
    """Like a dead network filesystem: a write to it never returns."""
    stuck = tmp_path / "python"
    stuck.write_text("#!/bin/sh\nexec sleep 60\n")
    stuck.chmod(0o755)
    monkeypatch.setattr(_files.sys, "executable", str(stuck))
    monkeypatch.setattr(_files, "_PATIENCE", 0.5)
    _report.print_and_write("rank 1 is missing", "rank 1 is missing", {"verdict": "rank 1 is missing", "ranks": []})
    printed = capfd.readouterr().err
    assert printed.index("rank 1 is missing") < printed.index("it has not answered for"), printed


def test_hang_show_begins_with_the_job_of_this_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = {
        "a": {"session": 1, "pid": 1},
        "b": {"session": os.getsid(0), "pid": os.getpid()},
        "c": {"session": 1, "pid": 1},
    }
    for name in jobs:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(_node, "directory", lambda *_: str(tmp_path))
    monkeypatch.setattr(_viewer, "_ask", lambda path, seconds: {"job": jobs[os.path.basename(path)]})
    assert [answer["job"]["pid"] for answer in _viewer.show()] == [os.getpid(), 1, 1]


def test_default_report_directory_is_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_files.VARIABLE, raising=False)
    assert os.path.dirname(_files.place()) == _node.directory(_node.REPORTS)


def test_signal_with_a_user_handler_is_not_sent() -> None:
    """It would call the user's handler as soon as the rank releases the GIL."""
    dump = _processes.Dump()
    number = dump.signal
    assert number
    signal.signal(number, lambda *_: None)
    try:
        assert dump.signal == 0
    finally:
        faulthandler.unregister(number)
        signal.signal(number, signal.SIG_DFL)
