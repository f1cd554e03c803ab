"""``scripts/prove --upstream``, on a small repository laid out as upstream's."""

import os
import subprocess
import sys

import pytest

from tests.support.variants import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import _outside_tests as upstream_tests

FETCHERS = "tests/tests_pytorch/loops/test_fetchers.py"
PR = 19177  # of fit-resets-should-stop, which concerns 2.3.3
TEST_FILE = """\
import os, pathlib, sys
import pytest
import lightning.pytorch.loops.fetchers

SHIM = "lightning_patches" in sys.modules
COUNT = pathlib.Path(__file__).with_name("count")

def test_both():
    pass

def test_neither():
    assert False, "as ever"

@pytest.mark.skip(reason="Requires: [A GPU]")
def test_skipped():
    assert False

@pytest.mark.parametrize("value", [1, 2])
def test_encodes_the_bug(value):
    assert not SHIM or value == 1

def test_encodes_a_bug_that_is_not_fixed():
    assert not SHIM or os.environ.get("LIGHTNING_PATCHES") == "-resume-on-last-batch"

class TestClass:
    def test_the_patches_break_this(self):
        assert not SHIM

def test_needs_the_fix():
    assert SHIM

def test_flaky():
    with COUNT.open("a") as file:
        file.write(".")
    assert len(COUNT.read_text()) in (1, 4)
"""


def git(repository, *arguments):
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-C", str(repository), "-c", "commit.gpgsign=false", *arguments]
    subprocess.run(command, check=True, env={**os.environ, **identity}, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """With the tag 2.3.3, and after it a fix that changes one test."""
    repository = tmp_path_factory.mktemp("upstream")
    package = repository / "src" / "lightning" / "pytorch" / "loops"
    package.mkdir(parents=True)
    for directory in (package, package.parent, package.parent.parent, package.parent.parent / "fabric"):
        directory.mkdir(exist_ok=True)
        (directory / "__init__.py").write_text("")
    (package / "fetchers.py").write_text("")
    (repository / FETCHERS).parent.mkdir(parents=True)
    (repository / FETCHERS).write_text(TEST_FILE)
    (repository / "pyproject.toml").write_text("")
    git(repository, "init", "-q", "-b", "master")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "as released")
    git(repository, "tag", "2.3.3")
    (repository / FETCHERS).write_text(TEST_FILE.replace("assert not SHIM or value == 1", "assert value"))
    git(repository, "commit", "-q", "-a", "-m", f"Reset should_stop (#{PR})")
    return repository


def test_each_test_is_classified(repository, tmp_path):
    listed = tmp_path / "explained"
    listed.write_text(
        f"{FETCHERS}::test_encodes_the_bug  #{PR}\n{FETCHERS}::TestClass::test_the_patches_break_this #{PR}\n"
        f"{FETCHERS}::TestClass::test_the_patches_break_this resume-on-last-batch\n"
        f"{FETCHERS}::test_encodes_a_bug_that_is_not_fixed resume-on-last-batch\n"
    )
    upstream = upstream_tests.Upstream(repository)
    work = tmp_path / "work"
    work.mkdir()
    found = upstream_tests.compare(upstream, "2.3.3", work, jobs=1, source=repository / "src", explained=listed)
    assert found.regressions == {
        f"{FETCHERS}::test_encodes_the_bug[2]": f"#{PR}",
        f"{FETCHERS}::test_encodes_a_bug_that_is_not_fixed": "resume-on-last-batch",
        # not changed by that pull request, and fails without that patch, too
        f"{FETCHERS}::TestClass::test_the_patches_break_this": "",
    }
    assert found.defects == [f"{FETCHERS}::TestClass::test_the_patches_break_this"]
    assert (found.fixed, found.flaky) == ([f"{FETCHERS}::test_needs_the_fix"], [f"{FETCHERS}::test_flaky"])
    assert found.counts == {"passed": 2, "failed": 1, "skipped": 1}
