"""``scripts/renew``: generated files are up to date, false records are refused, and the guide for a patch works."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lightning_patches import patches as catalogue
from lightning_patches.known import coverage
from tests.support.variants import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import _coverage
import _environment

EXAMPLE = "fit-resets-should-stop"


def run(directory, *command, status=0):
    done = subprocess.run([sys.executable, *command], cwd=directory, capture_output=True, text=True, timeout=500)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_generated_files_are_up_to_date():
    run(ROOT, "scripts/renew", "--check")


@pytest.mark.timeout(900)
def test_recorded_facts_match_the_releases():
    """Reads all wheels again instead of the recorded facts."""
    run(ROOT, "scripts/renew", "--check", "--afresh")


@pytest.fixture
def clone(tmp_path):
    """Return a clean clone of this checkout, whose ``.venv`` has the packages of this Python."""
    source, clone = tmp_path / "source", tmp_path / "clone"
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    git(source, "init", "-q", "-b", "main")
    git(source, "add", "--force", ".")
    git(source, "commit", "-q", "-m", "as it is")
    git(tmp_path, "clone", "-q", str(source), str(clone))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(clone / ".venv")], check=True)
    (site,) = (clone / ".venv" / "lib").glob("python*/site-packages")
    own = [clone, clone / "lightning_patches" / "activation" / "entry_points"]  # as in an editable installation
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (site / "shared.pth").write_text("\n".join(map(str, [*own, *shared])))
    (clone / ".venv" / "lightning-patches").write_text(_environment.recipe(clone))
    return clone


def git(directory, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=b", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(directory), *identity, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def guide():
    """Return the commands, the files and the excerpts of "How to add a patch"."""
    page = (ROOT / "upstream" / "README.md").read_text().partition("## How to add")[2]
    commands = re.findall(r"^    (scripts/.*?) +#", page, re.MULTILINE)
    excerpts = [
        re.sub(r"^   ", "", text, flags=re.M) for text in re.findall(r"   ```\w+\n(.*?)   ```", page, re.DOTALL)
    ]
    return commands, re.findall(r"^\d\. The \w+: `([\w/.-]+)`", page, re.MULTILINE), excerpts


def test_guide_shows_parts_of_the_files():
    _, files, excerpts = guide()
    files.append("tests/patches/loggers/csv_logger_step.py")
    assert len(files) == len(excerpts) == 4
    for name, excerpt in zip(files, excerpts):
        assert excerpt.rstrip() in (ROOT / name).read_text(), name


@pytest.mark.equivalence
@pytest.mark.timeout(900)
def test_guide_for_adding_a_patch_works_step_by_step(clone):
    """Removes the example from the clone, and adds it again by the steps of the document."""
    (new, test), files, _ = guide()
    assert (new, test) == (f"scripts/new {EXAMPLE} loops", f"scripts/test {EXAMPLE}")
    texts = {path: (clone / path).read_text() for path in files}
    for path in files:
        (clone / path).unlink()
    assert "fix #19177 has no verdict" in run(clone, "scripts/renew", status=1)
    left = subprocess.run(["git", "-C", str(clone), "grep", "-l", f'"{EXAMPLE}"', "lightning_patches"], text=True)
    assert left.returncode == 1, "it is out"
    assert sorted(run(clone, *new.split()).splitlines()[:3]) == sorted(files)
    printed = run(clone, *test.split(), status=1)
    assert "context not found in lightning/pytorch/trainer/trainer.py, Trainer.fit" in printed
    for path, text in texts.items():
        (clone / path).write_text(text)
    printed = run(clone, *test.split())
    assert re.search(r"\b[1-9]\d+ passed", printed), printed
    assert git(clone, "diff") == "", "what is derived is as it was"


def test_outdated_files_are_named_and_rewritten(clone):
    page, diff = clone / "upstream" / "PATCHES.md", clone / "upstream" / "diffs" / "compiled-log.patch"
    right = page.read_text(), diff.read_text()
    page.write_text("another")
    assert run(clone, "scripts/renew", "--check", status=1) == "upstream/PATCHES.md is not up to date: scripts/renew\n"
    assert page.read_text() == "another"
    diff.write_text(right[1].replace("\n+++ ", "\n--- a/x.py\n+++ b/").replace("\n@@ ", "\n@@ -1,2 +1,3 @@ "))
    run(clone, "scripts/renew")
    assert (page.read_text(), diff.read_text()) == right


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        (
            "2.5.1 | | 19177 | left out: on purpose | A Trainer stays stopped.",
            f"#19177 is 'left out' in coverage.txt, but {EXAMPLE} fixes it",
        ),
        ("2.5.1 | | 21746 | left out: on purpose | Said twice.", "#21746 has more than one verdict in coverage.txt"),
    ],
)
def test_false_verdict_is_refused(monkeypatch, line, printed):
    coverage.fixes.cache_clear()
    text = (ROOT / "lightning_patches" / "known" / "coverage.txt").read_bytes()
    monkeypatch.setattr(coverage.pkgutil, "get_data", lambda *_: text + line.encode() + b"\n")
    try:
        assert any(printed in problem for problem in _coverage.problems()), _coverage.problems()
    finally:
        coverage.fixes.cache_clear()


def test_partial_patch_is_named_with_the_verdict_on_the_rest():
    assert any(20379 in patch.numbers for patch in catalogue.all_patches())
    assert _coverage.problems() == []


def test_table_that_disagrees_with_a_record_is_refused(tmp_path):
    page = tmp_path / "README.md"
    text = Path(ROOT / "README.md").read_text()
    page.write_text(text)
    assert _coverage.disagreements(page) == []
    page.write_text(text.replace("sync_dist=True)` | 2.1.0 to 2.3.3 |", "sync_dist=True)` | 2.1.0 to 2.4.0 |"))
    (printed,) = _coverage.disagreements(page)
    assert "says 2.1.0 to 2.4.0 (19813)" in printed and "2.1.0 to 2.3.3" in printed
