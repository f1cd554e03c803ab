"""``scripts/prove upstream_tests``, on a small repository laid out as upstream's, and its record of the real ones."""

import json
import os
import subprocess
import sys

import pytest

from tests.equivalence import evidence
from tests.support.arms import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import _upstream_results as results

pytestmark = pytest.mark.xdist_group("upstream_tests")  # they share a campaign
LOOPS = "tests/tests_pytorch/loops"
FETCHERS = f"{LOOPS}/test_fetchers.py"
PR = 19177  # of fit-resets-should-stop, which concerns 2.3.3
TEST_FILE = """\
import os, pathlib, signal, sys, time, warnings
import pytest
import lightning.pytorch.loops.fetchers

SHIM = "lightning_patches" in sys.modules
PATCHED = os.environ.get("LIGHTNING_PATCHES", "") == "default" or "fit-resets-should-stop" in os.environ.get(
    "LIGHTNING_PATCHES", ""
)
COUNT = pathlib.Path(__file__).with_name("count")
left_behind = []

def test_both():
    warnings.warn("from a newer torch", FutureWarning)

def test_neither():
    assert False, "as ever"

@pytest.mark.skip(reason="Requires: [A GPU]")
def test_skipped():
    assert False

@pytest.mark.parametrize("value", [1, 2])
def test_encodes_the_bug(value):
    assert not PATCHED or value == 1

def test_the_shim_breaks_this():
    assert not PATCHED

def test_needs_the_fix():
    assert SHIM

def test_flaky():
    with COUNT.open("a") as file:
        file.write(".")
    assert len(COUNT.read_text()) % 2

def test_leaves_something_behind():
    if SHIM:
        left_behind.append(1)

def test_finds_what_is_left_behind():
    assert not left_behind

def test_the_shim_ends_the_process():
    if SHIM:
        os.kill(os.getpid(), signal.SIGKILL)

def test_the_shim_hangs():
    if SHIM:
        time.sleep(600)

@pytest.mark.skipif(os.environ.get("PL_RUN_STANDALONE_TESTS") != "1", reason="Requires: [Standalone execution]")
def test_standalone():
    assert sys.argv[0].endswith("_upstream_worker.py") and not left_behind

def test_last():
    pass
"""
FIXED_FILE = TEST_FILE.replace("assert not PATCHED or value == 1", "assert value")


def git(repository, *arguments):
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-C", str(repository), "-c", "commit.gpgsign=false", *arguments]
    subprocess.run(command, check=True, env={**os.environ, **identity}, capture_output=True)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    """A repository with the tag 2.3.3, and after it a fix that changes one test and a commit that changes another."""
    repository = tmp_path_factory.mktemp("upstream")
    package = repository / "src" / "lightning" / "pytorch" / "loops"
    package.mkdir(parents=True)
    for directory in (package, package.parent, package.parent.parent, package.parent.parent / "fabric"):
        directory.mkdir(exist_ok=True)
        (directory / "__init__.py").write_text("")
    (package / "fetchers.py").write_text("")
    (repository / LOOPS).mkdir(parents=True)
    (repository / FETCHERS).write_text(TEST_FILE)
    (repository / LOOPS / "test_other.py").write_text("def test_other():\n    assert True\n")
    (repository / LOOPS / "helper.py").write_text("")
    (repository / "pyproject.toml").write_text('[tool.pytest.ini_options]\nfilterwarnings = ["error::FutureWarning"]\n')
    git(repository, "init", "-q", "-b", "master")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "as released")
    git(repository, "tag", "2.3.3")
    (repository / FETCHERS).write_text(FIXED_FILE)
    git(repository, "commit", "-q", "-a", "-m", f"Reset should_stop (#{PR})")
    (repository / FETCHERS).write_text(FIXED_FILE.replace("assert SHIM", "assert True"))
    git(repository, "commit", "-q", "-a", "-m", "Another change (#1)")
    return repository


def run(repository, *arguments):
    command = [sys.executable, str(ROOT / "scripts" / "prove"), "upstream_tests", str(repository), "--tags", "2.3.3"]
    source = ["--source", str(repository / "src")]
    return subprocess.run([*command, *source, *map(str, arguments)], capture_output=True, text=True, timeout=500)


@pytest.fixture(scope="module")
def campaign(upstream, tmp_path_factory):
    """Results of a whole run, and what it said. The limit is that of the test that hangs."""
    directory = tmp_path_factory.mktemp("results")
    done = run(upstream, "--results", directory, "--limit", "5", "--bisect")
    assert done.returncode == 1, done.stdout + done.stderr
    return directory, done.stdout


def recorded(upstream, directory, output, explained=""):
    (output / "explained").write_text(explained)
    done = run(upstream, "--results", directory, "--record", "--output", output, "--explained", output / "explained")
    data = json.loads((output / "upstream_tests.json").read_text())
    return done, data["tags"][0]


def names(tests):
    return [test.partition("::")[2] for test in tests]


def test_each_test_is_put_where_it_belongs(upstream, campaign, tmp_path):
    done, tag = recorded(upstream, campaign[0], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert (tag["files"], tag["files_done"], tag["tests"]) == (2, 2, 15)
    assert {r["test"].partition("::")[2]: r["patch"] for r in tag["regressions"]} == {
        "test_encodes_the_bug[2]": "fit-resets-should-stop",
        "test_the_shim_breaks_this": "fit-resets-should-stop",
        "test_finds_what_is_left_behind": "only after other tests",
        "test_the_shim_ends_the_process": "the shim itself",
        "test_the_shim_hangs": "the shim itself",
    }
    assert names(tag["improved"]) == ["test_needs_the_fix"]
    assert names(tag["flaky"]) == ["test_flaky"]
    # test_both, test_encodes_the_bug[1], test_leaves_something_behind, test_standalone, test_last, test_other
    assert (tag["passed"], tag["failed"], tag["skipped"]) == (6, 1, 1)
    assert tag["why_failed"] == {"AssertionError": 1}
    assert tag["why_skipped"] == {"Requires: [A GPU]": 1}
    assert tag["open"] == tag["changed"] == []
    data = json.loads((tmp_path / "upstream_tests.json").read_text())
    assert results.compact(data) == (tmp_path / "upstream_tests.json").read_text()
    assert "all are stale" not in results.markdown(data, evidence.package())
    page = results.markdown(data, "another")
    assert "all are stale" in page
    assert "**Not the whole: not begun: 2.0.9, 2.1.4, 2.2.5, 2.4.0, 2.5.6, 2.6.5.**" in page
    assert "| 2.3.3 | 2 | 15 | 6 | 5 | 0 | 1 | 1 | 1 | 1 |" in page
    assert f"| 2.3.3 | `{FETCHERS}::test_the_shim_hangs` | the shim itself | **defect** |" in page


def test_an_explanation_holds_only_if_history_bears_it_out(upstream, campaign, tmp_path):
    explained = f"# a comment\n{FETCHERS}::test_encodes_the_bug  #{PR}\n"
    _, tag = recorded(upstream, campaign[0], tmp_path, explained)
    by = {test["test"].partition("::")[2]: test["explained_by"] for test in tag["regressions"]}
    assert by.pop("test_encodes_the_bug[2]") == PR
    assert set(by.values()) == {0}
    # That pull request did not change this test; this one is in no patch's record.
    for line in (f"{FETCHERS}::test_the_shim_breaks_this #{PR}\n", f"{FETCHERS}::test_encodes_the_bug #1\n"):
        _, tag = recorded(upstream, campaign[0], tmp_path, line)
        assert {test["explained_by"] for test in tag["regressions"]} == {0}


def test_change_of_a_test_is_found_in_history(upstream):
    def read(*command):
        return subprocess.run(["git", "-C", str(upstream), *command], capture_output=True, text=True).stdout

    assert results.changed_by(read, f"{FETCHERS}::test_encodes_the_bug[2]", PR, "2.3.3")
    assert not results.changed_by(read, f"{FETCHERS}::test_encodes_the_bug", PR, "master")  # it is in there
    assert not results.changed_by(read, f"{FETCHERS}::test_both", PR, "2.3.3")
    assert not results.changed_by(read, f"{FETCHERS}::test_missing", PR, "2.3.3")


def test_source_of_a_test_has_its_decorators_and_no_neighbours():
    text = "class TestA:\n    @mark\n    def test_b(self):\n        x = 1\n\n    def test_c(self): ...\n"
    assert results.source_of(text, "TestA::test_b") == "    @mark\n    def test_b(self):\n        x = 1"
    assert results.source_of(text, "TestA::test_d") is None
    assert results.source_of("def", "test") is None


def test_a_line_of_another_form_is_refused(tmp_path):
    (tmp_path / "explained").write_text("tests/test_a.py::test_b 123\n")
    with pytest.raises(ValueError, match="explained, line 1: not of the form"):
        results.read_explained(tmp_path / "explained")


def test_what_has_run_does_not_run_again(upstream, campaign):
    done = run(upstream, "--results", campaign[0], "--limit", "5")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_other.py" not in done.stdout
    assert " file" not in done.stdout.replace(" files", "")
    assert campaign[1].splitlines()[-1] in done.stdout


def test_slices_go_on_where_the_last_one_ended(upstream, tmp_path):
    done = run(upstream, "--results", tmp_path, "--minutes", "0")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "0 of 2 files" in done.stdout
    done = run(upstream, "--results", tmp_path, "--files", "test_other", "--arms", "stock")
    assert "stock tests/tests_pytorch/loops/test_other.py: 1 passed" in done.stdout, done.stdout + done.stderr
    done = run(upstream, "--results", tmp_path, "--files", "test_other")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stock" not in done.stdout
    assert "shim tests/tests_pytorch/loops/test_other.py: 1 passed" in done.stdout
    assert "1 of 1 files, 1 tests, 1 pass in both, 0 regressions" in done.stdout


def test_files_that_touch_a_patch(upstream, tmp_path):
    done = run(upstream, "--list")
    assert done.stdout.split() == [FETCHERS, f"{LOOPS}/test_other.py"], done.stdout + done.stderr
    done = run(upstream, "--list", "--patch", "dataloader-error-unmasked")
    assert done.stdout.split() == [FETCHERS], done.stdout + done.stderr


def test_what_is_no_repository_is_refused(upstream, tmp_path):
    assert f"{tmp_path} is no git repository" in run(tmp_path).stderr
    done = run(upstream, "--tags", "2.0.0")
    assert done.returncode == 1
    assert "has no tag 2.0.0" in done.stderr


def test_other_tags_stay_in_the_record(tmp_path):
    """Unless they were run in other circumstances, as with another torch."""

    def written(tag, torch):
        results.write(tmp_path, {"torch": torch, "date": tag}, ["2.2.5", "2.5.6"], [{"tag": tag}])
        return [entry["tag"] for entry in json.loads((tmp_path / "upstream_tests.json").read_text())["tags"]]

    assert written("2.5.6", "2.13.0") == ["2.5.6"]
    assert written("2.2.5", "2.13.0") == ["2.2.5", "2.5.6"]
    assert written("2.5.6", "2.2.2") == ["2.5.6"]


def test_explanations_can_be_read():
    results.read_explained(ROOT / "upstream" / "upstream_tests.explained")
