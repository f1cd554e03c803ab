"""Evidence is written by spans of releases, and nothing of what was seen in each place is lost."""

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.equivalence import evidence, known_bugs, record, stacks
from tests.equivalence.evidence import Seen
from tests.support.arms import ROOT

VERSIONS = evidence.untold("2.0.0 to 2.6.6")
RECORDS = sorted(evidence.DIRECTORY.glob("*.txt"))


def seen_on(*versions, **fields):
    return [Seen("a:b stock", "bug", ("", version), subject=f"s{version}", **fields) for version in versions]


def now(one):
    return f"s{one.place[1]}"


def read(path, now=now):
    return evidence.read(path, now)[1]


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        (["2.0.0"], "2.0.0"),
        (["2.3.1", "2.3.0", "2.3.2"], "2.3.0 to 2.3.2"),
        (["2.0.9", "2.0.9.post0", "2.1.0", "2.6.1", "2.6.4"], "2.0.9 to 2.1.0, 2.6.1 to 2.6.4"),
    ],
)
def test_spans_of_releases(versions, text):
    assert evidence.told(versions) == text
    assert set(evidence.untold(text)) == set(versions)


def test_outcomes_come_back_release_by_release(tmp_path):
    """Whatever they are: also those for which another place stands, and notes with all that a program may say."""
    dice = random.Random(0)
    seen = []
    for case in ("a:b stock", "a:b shim", "c"):
        for group in ("lightning", "pytorch-lightning", "torch 2.2.2"):
            for version in dice.sample(VERSIONS, 30):
                by = dice.choice([None, (group, "2.1.0"), ("lightning", "2.0.0")])
                note = dice.choice(["", 'a | b\n"c"; d by e to f', "# g: h"])
                saw, commit = dice.choice(["bug", "affected: stock bug, shim right"]), dice.choice(["", "1a2b3c"])
                seen.append(Seen(case, saw, (group, version), by, commit, note, subject=f"s{version}"))
    path = tmp_path / "some.txt"
    evidence.write(path, {"date": "today", "left_out": ["a: b"]}, seen)
    facts, back = evidence.read(path, now)
    assert facts == {"date": "today", "left_out": ["a: b"]}
    plain = {(o.case, o.saw, o.place, o.by, o.commit, o.note, o.subject, o.stale) for o in back}
    assert plain == {(o.case, o.saw, o.place, o.by, o.commit, o.note, o.subject, False) for o in seen}
    assert len(back) == len(seen)
    text = path.read_text()
    evidence.write(path, facts, back)
    assert set(path.read_text().splitlines()) == set(text.splitlines())


def test_one_line_for_a_span_and_one_digest(tmp_path):
    path = tmp_path / "some.txt"
    evidence.write(path, {}, seen_on(*VERSIONS[:20]))
    (line,) = path.read_text().splitlines()
    assert re.fullmatch(r"a:b stock \| bug \| 2\.0\.0 to 2\.2\.1 \| [0-9a-f]{12} \|  \| ", line)


def test_a_span_is_stale_where_one_of_its_releases_is_and_the_cells_know_which(tmp_path):
    path = tmp_path / "some.txt"
    evidence.write(path, {}, seen_on("2.0.0", "2.0.1"))

    def changed(one):
        return "another" if one.place[1] == "2.0.1" else now(one)

    assert [one.stale for one in read(path, changed)] == [False, True]
    path.with_suffix(".cells").unlink()
    assert [one.stale for one in read(path)] == [False, False]
    assert [one.stale for one in read(path, changed)] == [True, True], "a fresh clone has only the line's digest"
    assert [one.stale for one in read(path, lambda one: "")] == [True, True], "there is no such case any more"
    text = path.read_text()
    evidence.write(path, {}, read(path, changed))
    assert path.read_text() == text, "what is stale keeps its digest"
    renewed = [*seen_on("2.0.0"), *read(path, changed)[1:]]
    evidence.write(path, {}, renewed)
    assert path.read_text().splitlines()[1].split(" | ")[2:4] == ["2.0.1", evidence.UNKNOWN]
    assert [one.stale for one in read(path)] == [False, True], "no code proves the rest of a line"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_records_can_be_read_and_are_written_as_they_are(path, tmp_path):
    copy = Path(shutil.copy(path, tmp_path))  # without the cells that a run on this machine may have left
    facts, seen = evidence.read(copy, lambda one: "")
    assert len({(one.case, one.place, one.saw.partition(":")[0]) for one in seen}) == len(seen)
    if seen:
        evidence.write(copy, facts, seen)
        assert copy.read_text() == path.read_text()
    assert path.stat().st_size < 400_000


def test_what_they_hold_is_what_the_pages_count():
    _, outcomes = record.read(evidence.DIRECTORY / record.FILES[0])
    assert len(outcomes) > 6000 and all(outcome["arms"] for outcome in outcomes)
    _, seen = known_bugs.read()
    assert len(seen) > 14000 and {one.saw for one in seen} <= {"bug", "none", "fails"}
    held = stacks.load()
    assert sum(len(of_stack.cases) for of_stack in held.values()) > 1400


def test_no_record_names_a_commit_that_is_not_in_the_history():
    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)

    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("the history is not here")
    commits = {one.commit for path in RECORDS for one in read(path, lambda one: "")} - {"", evidence.UNKNOWN}
    text = (evidence.DIRECTORY / "healthy.json").read_text()
    commits |= set(re.findall(r'"([0-9a-f]{7,40}\+?) [0-9a-f]{12}"', text))
    assert commits
    for commit in commits:
        assert git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0, commit


def test_a_commit_is_named_only_if_the_tree_is_that_of_it(monkeypatch, tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=b", *arguments], check=True)

    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    git("init", "-q")
    for name in ("code", "text"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert re.fullmatch("[0-9a-f]{10}", evidence.commit("code"))
    (tmp_path / "text").write_text("2")
    assert evidence.commit("code") != evidence.UNKNOWN
    (tmp_path / "code").write_text("2")
    assert evidence.commit("code") == evidence.UNKNOWN


def test_what_is_derived_is_up_to_date():
    """The pages say what is stale: they change with the code. `scripts/renew` brings them up to date."""
    command = [sys.executable, "scripts/renew", "--check"]
    check = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert check.returncode == 0, check.stdout + check.stderr


def test_what_is_not_up_to_date_is_named_and_mended(tmp_path):
    """In a copy of the repository."""
    for name in ("lightning_patches", "scripts", "upstream"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.cells"))
    page, diff = tmp_path / "upstream" / "COVERAGE.md", tmp_path / "upstream" / "diffs" / "compiled-log.patch"
    right = page.read_text(), diff.read_text()
    page.write_text("another")
    diff.write_text(
        re.sub(r"@@ -\d+,", "@@ -1,", diff.read_text(), count=1).replace("Applied-Upstream: no", "Bug: 1", 1)
    )

    def renew(*arguments):
        command = [sys.executable, "scripts/renew", "COVERAGE", "compiled-log", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)

    checked = renew("--check")
    assert (checked.returncode, checked.stderr) == (1, "")
    assert checked.stdout.splitlines() == [
        "upstream/diffs/compiled-log.patch is not up to date: scripts/renew",
        "upstream/COVERAGE.md is not up to date: scripts/renew",
    ]
    assert page.read_text() == "another"
    assert renew().returncode == 0
    assert (page.read_text(), diff.read_text()) == right
    assert (renew("--check").returncode, renew("--check").stdout) == (0, "")
