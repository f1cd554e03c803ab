"""The maintainer's scripts that compare with upstream: compare_code, and those that run the matrix and known bugs."""

import os
import subprocess
import sys

from tests.equivalence import evidence, matrix, record
from tests.support.arms import ROOT
from tests.support.scripts import load


def script(name, *arguments, **variables):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / name), *map(str, arguments)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=250,
    )


def test_every_difference_from_the_official_code_is_explained():
    done = script("compare_code")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lr-finder-train-loader" in done.stdout
    after = done.stdout.partition("lr-finder-train-loader:")[2]
    assert after.splitlines()[1] == "  _lr_find: identical", done.stdout
    assert "dataloader-error-unmasked: no official fix to compare with" in done.stdout


def test_compare_code_shows_the_lines():
    done = script("compare_code", "logged-metrics-device")
    assert "+    self[key].to(value.device)" in done.stdout, done.stdout + done.stderr


def outcome(arms, agrees=True, **fields):
    facts = {"patch": "some-patch", "case": "", "distribution": "lightning", "version": "2.1.0", "role": "affected"}
    told = {"reference": "lightning 2.4.0", "agrees": agrees, "details": "", "by": "", "commit": "c", "torch": ""}
    digests = {"subject": "s", "premise": "p", "expected": "e", "stale": False}
    return {**facts, "arms": arms, **told, **digests, **fields}


GOOD = {"stock": "bug", "shim": "right", "fork": "right", "official": "right"}
FACTS = {
    "scope": "all",
    "planned": 3,
    "date": "2026-11-21",
    "torch": "2.13.0",
    "python": "3.11",
    "device": "CPU",
    "seconds": 120,
    "runs": 9,
}


def test_record_shows_each_arm_and_names_what_disagrees():
    bad = outcome({**GOOD, "shim": "differs"}, False, distribution="pytorch-lightning", details="shim: differs")
    cells = [outcome(GOOD), bad, outcome({"stock": "right", "shim": "as stock"}, version="2.4.0", role="fixed")]
    text = record.markdown(FACTS, cells)
    assert "**3 cells: 3 hold on this code, 0 are stale; 1 disagree.**" in text
    assert "| 2.1.0 | ✗✓✓✓ lightning<br>**✗≠✓✓** pytorch-lightning |" in text
    assert "| 2.4.0 | ✓= |" in text
    assert "- some-patch, pytorch-lightning 2.1.0:\n\n      shim: differs" in text
    text = record.markdown(FACTS, cells[:2])
    assert "**Not a whole run: 2 of 3 cells: 2 hold on this code, 0 are stale; 1 disagree.**" in record.markdown(
        FACTS, cells[:2]
    )


def test_record_says_what_stands_for_what_and_what_is_stale():
    cells = [outcome(GOOD, by="lightning 2.1.1"), outcome(GOOD, version="2.1.1", stale=True, commit="abc")]
    text = record.markdown(FACTS, cells)
    assert "For 1 cells another release stands" in text
    assert "2 of 3 cells: 1 hold on this code, 1 are stale; 0 disagree" in text
    assert "`c` 1, `abc` (stale) 1." in text


def test_record_is_taken_over_only_under_the_same_circumstances(tmp_path):
    path = tmp_path / "equivalence.txt"
    record.write(path, FACTS, [outcome(GOOD)])
    assert [o["agrees"] for o in record.load(path, {**FACTS, "date": "later"}).values()] == [True]
    assert record.load(path, {**FACTS, "device": "another"}) == {}
    assert record.load(path, {**FACTS, "torch": "2.14.0"}) == {}
    assert record.load(tmp_path / "missing.txt", FACTS) == {}


def test_record_is_put_together_from_parts(tmp_path):
    cells = matrix.cells(["fit-resets-should-stop"])
    outcomes = [
        {**outcome(GOOD, version=c.version, role=c.role, distribution=c.distribution), "patch": c.proof.patch}
        | {"subject": matrix.subject(c), "reference": f"{c.distribution} 2.4.0"}
        for c in cells
    ]
    facts = {**FACTS, **evidence.surroundings()}
    for name, part in (("one", outcomes[:5]), ("two", outcomes[5:])):
        record.write(tmp_path / name / "equivalence.txt", facts, part)
    command = ["--all", "--only", "fit-resets-should-stop", "--part", tmp_path / "one", "--part", tmp_path / "two"]
    done = script("prove", "equivalence", *command, "--output", tmp_path / "whole")
    assert f"{len(cells)} taken over, 0 to run" in done.stdout, done.stdout + done.stderr
    written, cells = record.read(tmp_path / "whole" / "equivalence.txt")
    assert [{**cell, "line": None} for cell in sorted(cells, key=record.key)] == [
        {**outcome, "line": None} for outcome in sorted(outcomes, key=record.key)
    ]
    assert (written["runs"], written["seconds"]) == (18, 240)


def test_arm_that_two_cells_ask_for_runs_once(monkeypatch):
    calls = []
    monkeypatch.setattr(matrix, "run", lambda *arguments, **options: calls.append(arguments) or "result")
    runner = matrix.Runner()
    proof = matrix.proofs()[0]
    arm = matrix.Arm("lightning", "2.1.0")
    assert runner(proof, arm) == runner(proof, arm) == "result"
    assert len(calls) == runner.runs == 1
    runner(proof, arm, toggle="all")
    assert len(calls) == 2


def test_a_release_that_is_the_same_source_stands_for_another_in_the_count_of_known_bugs(monkeypatch, tmp_path):
    """As long as what it depends on of ours is the same; what failed, or left no word, stands for nothing."""
    known_bugs = load("_prove_known_bugs.py")
    proof = next(p for p in matrix.proofs() if p.patch == "resume-single-iteration")
    sources = {"2.1.0": "a", "2.1.1": "a", "2.1.2": "b", "2.1.3": "a", "2.1.4": "a"}
    ran = []

    def look(proof, version, arm, runner):
        ran.append((version, arm))
        if version == "2.1.0" and arm == "shim":
            return ("fails", "the machine"), None
        return ("bug" if arm == "stock" else "none",), version

    def same(one, other, executed):
        return sources[one[1]] == sources[other[1]] == "a"

    monkeypatch.setattr(known_bugs, "look", look)
    monkeypatch.setattr(known_bugs.same_code, "same", same)
    monkeypatch.setattr(known_bugs, "RECORD", tmp_path / "known_bugs.txt")
    monkeypatch.setattr(matrix, "proofs", lambda: [proof])
    # 2.1.4 has another default set: its shim depends on other code of ours
    monkeypatch.setattr(known_bugs, "subject", lambda proof, version, arm: f"{arm} {version > '2.1.3'}")
    known_bugs.measure(list(sources), 2, False)
    assert sorted(ran) == sorted(
        [
            *((v, "stock") for v in ("2.1.0", "2.1.2", "2.1.4")),
            *((v, "shim") for v in ("2.1.0", "2.1.1", "2.1.2", "2.1.4")),
            *((v, "all") for v in ("2.1.0", "2.1.2", "2.1.4")),
        ]
    )
    _, outcomes = evidence.read(tmp_path / "known_bugs.txt", lambda one: "")
    seen = {(one.place[1], one.case.rpartition(" ")[2]): (one.saw, one.by, one.note) for one in outcomes}
    assert seen["2.1.3", "stock"] == ("bug", ("", "2.1.0"), "")
    assert seen["2.1.3", "shim"] == ("none", ("", "2.1.1"), "")
    assert seen["2.1.2", "stock"] == ("bug", None, "")
    assert seen["2.1.0", "shim"] == ("fails", None, "the machine")
    assert len(seen) == 15


def test_known_bugs_of_one_release_and_arm_leave_the_rest_of_the_record(monkeypatch, tmp_path):
    known_bugs = load("_prove_known_bugs.py")
    proof = next(p for p in matrix.proofs() if p.patch == "resume-single-iteration")
    saw = {"stock": "bug", "shim": "none", "all": "none"}
    monkeypatch.setattr(known_bugs, "look", lambda proof, version, arm, runner: ((saw[arm],), None))
    monkeypatch.setattr(matrix, "proofs", lambda: [proof])
    for module in (known_bugs, known_bugs.known_bugs):
        monkeypatch.setattr(module, "RECORD", tmp_path / "known_bugs.txt")
    known_bugs.measure(["2.1.0", "2.1.1"], 1, False, ("stock", "shim"))
    before = known_bugs.known_bugs.page()
    assert "| 2.1.0 to 2.1.1 | 1 |  | 0 |  | not run |" in before and "| none | not run |" in before
    known_bugs.measure(["2.1.1"], 1, True, ("all",))
    after = known_bugs.known_bugs.page()
    assert "| 2.1.0 | 1 |  | 0 |  | not run |\n| 2.1.1 | 1 |  | 0 |  | 0 |" in after, after
    saw["all"] = "bug"
    known_bugs.measure(["2.1.0"], 1, True, ("all",))
    assert "| 2.1.0 | `resume-single-iteration` |" in known_bugs.known_bugs.page()


def test_fixes_that_upstream_did_not_call_so_are_found(tmp_path):
    """By their tests, which fail with the source of the commit before them."""
    source, tests = tmp_path / "src/lightning/pytorch/add.py", tmp_path / "tests/tests_pytorch/test_add.py"
    for path in (source, tests):
        path.parent.mkdir(parents=True)
    (tmp_path / "src/lightning/__init__.py").touch()
    (tmp_path / "src/lightning/pytorch/__init__.py").touch()
    (tmp_path / "pyproject.toml").touch()
    states = (
        ("Add", "def add(a, b):\n    return a\n", ""),
        ("Think of b (#1)", "def add(a, b):\n    return a + b\n", "def test_sum():\n    assert add(1, 2) == 3\n"),
        ("Say it in one line (#2)", "add = lambda a, b: a + b\n", "def test_zero():\n    assert add(0, 0) == 0\n"),
        (
            "Number 19813 has a verdict (#19813)",
            "def add(a, b): return a + b\n",
            "def test_one(): assert add(0, 1) == 1\n",
        ),
    )
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run([*git, "init", "-q", "-b", "master"], check=True)
    for subject, code, test in states:
        source.write_text(code)
        tests.write_text("from lightning.pytorch.add import add\n" + test)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", subject], check=True)
        subprocess.run([*git, "tag", "-f", "first"] if subject == "Add" else ["true"], check=True)
    command = [sys.executable, "scripts/unnamed_fixes", str(tmp_path), "--since", "first"]

    def said(*options):
        return subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=300).stdout

    assert said() == "merged  #2 Say it in one line\nmerged  #1 Think of b\n"
    assert said("--run") == "no fix  #2 Say it in one line\nfix     #1 Think of b\n"
    assert said("--run", "1") == "fix     #1 Think of b\n"
