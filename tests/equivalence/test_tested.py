"""The record of the tests of patches: what passed is skipped, as long as what it depends on is the same."""

import os
import sys

import pytest

from tests.equivalence import tested
from tests.support.arms import ROOT, execute

FILE = "tests/patches/test_trusted_checkpoint_load.py"
NODE = f"{FILE}::test_what_can_be_trusted"
PROGRAM = """
import pathlib, sys, pytest
from tests.equivalence import matrix, tested
tested.RECORD = pathlib.Path(sys.argv[1])
matrix.sampled = lambda name, share=20: False
sys.exit(pytest.main(["-q", "-rs", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setattr(tested, "RECORD", tmp_path / "record.json")


def test_what_passed_holds_until_something_changes(record, monkeypatch):
    assert not tested.holds(NODE, tested.load())
    tested.note({NODE: True, f"{FILE}::test_other": False})
    known = tested.load()
    assert tested.holds(NODE, known) and not tested.holds(f"{FILE}::test_other", known)
    monkeypatch.setattr(tested, "subject", lambda path: "another")
    assert not tested.holds(NODE, known)
    tested.note({f"{FILE}::test_other": True})
    assert tested.load()[FILE] == {"subject": "another", "passed": ["test_other"]}


def test_what_fails_is_taken_out(record):
    tested.note({NODE: True})
    tested.note({NODE: False})
    assert not tested.holds(NODE, tested.load())


def test_another_torch_proves_nothing(record, monkeypatch):
    tested.note({NODE: True})
    monkeypatch.setattr(tested.record, "surroundings", lambda: {"torch": "3.0", "python": "3.11", "device": "CPU"})
    assert tested.load() == {}


def test_a_test_depends_on_its_scenario_and_on_the_patch(tmp_path, monkeypatch):
    """But not on what is said in it."""

    def subject(text):
        path = ROOT / "tests" / "patches" / "test_made_up.py"
        monkeypatch.setattr(type(path), "read_text", lambda self, **_: text if self == path else real(self, **_))
        monkeypatch.setattr(tested, "content", lambda file: b"" if file == path else str(file).encode())
        return tested.of_patches.__wrapped__(path)

    real = type(ROOT).read_text
    monkeypatch.setattr(tested.matrix, "imported", lambda path: frozenset())
    none = subject("x = 1")
    assert subject("x = 2") == none
    assert len({none, subject("x = 'fit_resets_should_stop'"), subject("x = 'fit-resets-should-stop'")}) == 3


def test_which_tests_are_recorded():
    tests = ROOT / "tests"
    for file, yes in (
        ("activation/test_run.py", True),
        ("patches/test_compiled_log.py", True),
        ("equivalence/test_diffs.py", True),
        ("equivalence/test_equivalence.py", False),  # the matrix has a record of its own
        ("conformance/test_records.py", False),
        ("unit/test_cli.py", False),
    ):
        assert (tests / file).exists() and tested.may_be_skipped(tests / file) is yes, file
    assert all((tests / name).exists() for name in tested.COSTLY)
    assert not tested.may_be_skipped(ROOT.parent / "elsewhere" / "test_x.py")


OF_CODE = ["activation/test_run.py", "equivalence/test_diffs.py", "pythons/test_pythons.py"]
"""Below ``tests``: recorded tests of three folders that depend on all code, each also on something of its own."""


@pytest.mark.parametrize(
    ("file", "voids"),
    [
        ("lightning_patches/_runtime.py", OF_CODE),
        ("scripts/_fork.py", OF_CODE),
        ("tests/support/arms.py", OF_CODE),
        ("tests/activation/conftest.py", OF_CODE),
        ("upstream/diffs/compiled-log.patch", ["equivalence/test_diffs.py"]),
        ("tests/unit/test_cli.py", ["pythons/test_pythons.py"]),
        ("tests/activation/test_run.py", ["activation/test_run.py"]),
        ("tests/patches/test_compiled_log.py", []),
        ("tests/README.md", []),
        ("upstream/healthy.json", []),
        ("README.md", []),
    ],
)
def test_what_the_other_tests_depend_on(monkeypatch, file, voids):
    assert (ROOT / file).exists()
    of_file = {name: ROOT / "tests" / name for name in OF_CODE}
    before = {name: tested.of_code(path) for name, path in of_file.items()}
    real = tested.content
    monkeypatch.setattr(tested, "content", lambda path: b"changed" if path == ROOT / file else real(path))
    monkeypatch.setattr(tested, "of_shared_code", tested.of_shared_code.__wrapped__)
    assert [name for name, path in of_file.items() if tested.of_code.__wrapped__(path) != before[name]] == voids


def test_what_is_noted_of_a_run():
    """Not what was skipped, failed in its teardown, or takes no time."""
    run, slow, file = tested.Run(), 60.0, "tests/activation/test_run.py"
    for node, phases, seconds in (
        (f"{file}::test_right[a@b]@a_group", (True, True, True), slow),
        (f"{file}::test_quick", (True, True, True), 0.0),
        (f"{file}::test_skipped", (False, True), slow),
        (f"{file}::test_skipped_within", (True, False, True), slow),
        (f"{file}::test_teardown", (True, True, False), slow),
        (NODE, (True, True, True), 0.0),
        ("tests/unit/test_cli.py::test_some", (True, True, True), slow),
    ):
        for passed in phases:
            run.take(node, passed, seconds)
    wrong = ("skipped", "skipped_within", "teardown")
    assert run.outcomes() == {
        NODE: True,
        f"{file}::test_right[a@b]": True,
        **{f"{file}::test_{name}": False for name in wrong},
    }


@pytest.mark.parametrize("workers", [(), ("-n1", "--dist=loadgroup")], ids=["", "xdist"])
def test_a_run_is_recorded_and_then_skipped(tmp_path, workers):
    def run(**more):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "record.json"), NODE, *workers]
        dropped = ("PYTEST_XDIST", tested.RECORDING)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        return execute(command, {**variables, **more}, 300, cwd=str(ROOT))

    status, output = run(**{tested.RECORDING: "1"})
    assert status == 0 and "1 passed" in output, output
    if not workers:  # a worker looks at the record of the repository
        status, output = run()
        assert status == 0 and "1 skipped" in output and "its proof holds" in output, output
    assert NODE.partition("::")[2] in (tmp_path / "record.json").read_text()
