"""``scripts/renew``: generated files are up to date, false records are refused, and the guide for a patch works."""

import re
import shutil
import subprocess
import sys

import pytest

from tests.support.variants import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
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
