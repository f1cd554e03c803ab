"""Notices of patches: printed once, on rank zero, and without any effect on the program."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lightning_patches import notices
from lightning_patches.engine import toggle
from lightning_patches.errors import PatchError
from lightning_patches.notices import LightningPatchesWarning
from tests.support.run import check


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in notices._RANK_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.setattr(notices, "_get_selection", None)
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def torch_of_rank(rank: int, initialized: bool = True) -> Any:
    distributed = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: initialized, get_rank=lambda: rank)
    return SimpleNamespace(distributed=distributed)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, 0),
        ({"RANK": "3"}, 3),
        ({"LOCAL_RANK": "1"}, 1),
        ({"RANK": "5", "LOCAL_RANK": "1"}, 5),
        ({"SLURM_PROCID": "2"}, 2),
        ({"RANK": "", "LOCAL_RANK": "1"}, 1),
        ({"RANK": "none"}, 0),
    ],
)
def test_rank_is_read_from_the_launcher(monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert notices.rank() == expected


def test_rank_of_the_process_group_takes_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setitem(sys.modules, "torch", torch_of_rank(7))
    assert notices.rank() == 7
    monkeypatch.setitem(sys.modules, "torch", torch_of_rank(7, initialized=False))
    assert notices.rank() == 1
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())  # torch is being imported
    assert notices.rank() == 1
    begun = SimpleNamespace(is_available=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(distributed=begun))  # by another thread
    assert notices.rank() == 1


def test_notice_is_one_line_of_rank_zero(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    notices.notice("news")
    assert capsys.readouterr() == ("", "lightning_patches: news\n")
    monkeypatch.setenv("RANK", "1")
    notices.notice("news")
    assert capsys.readouterr() == ("", "")
    notices.notice("an error", urgent=True)
    assert capsys.readouterr() == ("", "lightning_patches: an error\n")
    monkeypatch.delenv("RANK")
    notices.use_options_of(lambda: toggle.Selection(frozenset(), quiet=True))
    notices.notice("news")
    notices.notice("an error", urgent=True)
    assert capsys.readouterr() == ("", "lightning_patches: an error\n")


def test_second_node_prints_nothing(capsys, monkeypatch, recwarn):
    monkeypatch.setenv("NODE_RANK", "1")
    notices.notice("news")
    notices.warn_once("a", "a warning")
    assert capsys.readouterr() == ("", "") and not recwarn.list
    monkeypatch.setenv("NODE_RANK", "0")
    notices.notice("news")
    assert capsys.readouterr().err


def test_notice_works_while_multiprocessing_is_imported(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "multiprocessing.process", SimpleNamespace())
    notices.notice("news")
    assert capsys.readouterr().err


def test_worker_process_prints_no_notices() -> None:
    program = """
import multiprocessing
from lightning_patches import notices
def work():
    print(notices.is_speaker(), flush=True)
if __name__ == "__main__":
    work()
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
"""
    assert check(program).split() == ["True", "False"]


def test_warning_becomes_a_line_if_warnings_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notices.warn_once("one", "about one")
        notices.report_misuse("two", "about two")
    assert capsys.readouterr().err == "lightning_patches: about one\nlightning_patches: [rank 0] about two\n"


def test_warning_is_issued_once_per_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for key in ("one", "one", "two"):
            notices.warn_once(key, f"about {key}")
        monkeypatch.setenv("RANK", "1")
        notices.warn_once("three", "about three")
        notices.warn_once("four", "about four", all_ranks=True)
    assert [str(one.message) for one in caught] == ["about one", "about two", "about four"]
    assert {one.category for one in caught} == {LightningPatchesWarning}
    assert issubclass(LightningPatchesWarning, UserWarning)


def test_misuse_is_a_warning_or_under_strict_an_error_on_each_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    with pytest.warns(LightningPatchesWarning, match=r"\[rank 3\] this cannot work"):
        notices.report_misuse("key", "this cannot work")
    notices.use_options_of(lambda: toggle.Selection(frozenset(), strict=True))
    for _ in range(2):
        with pytest.raises(PatchError, match=r"\[rank 3\] this cannot work"):
            notices.report_misuse("key", "this cannot work")


def test_patches_print_only_through_notices() -> None:
    """Two patches print Lightning's own messages, in Lightning's way."""
    patches = Path(notices.__file__).with_name("patches")
    speaks = re.compile(r"warnings\.warn\(|rank_zero_warn\(|\.warn\(")
    found = {path.stem for path in patches.rglob("*.py") if speaks.search(path.read_text(encoding="utf-8"))}
    assert found == {"interval_without_validation", "logged_tensor_precision"}


EVIL = "last\x1b\x1b[1m]0;title\x07\x9b31m\u202e.ckpt\r\nlightning_patches: all is well"


@pytest.mark.parametrize("kind", ["notice", "notice_once", "say", "warn_once", "report_misuse", "strict", "an error"])
def test_name_cannot_forge_a_line_or_control_a_terminal(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """For example, the name of a checkpoint."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error" if kind == "an error" else "always")
        if kind == "strict":
            notices.use_options_of(lambda: toggle.Selection(frozenset(), strict=True))
            with pytest.raises(PatchError) as raised:
                notices.report_misuse("key", EVIL)
            print(raised.value, file=sys.stderr)
        elif kind in ("notice", "say"):
            getattr(notices, kind)(EVIL)
        else:
            getattr(notices, "warn_once" if kind == "an error" else kind)("key", EVIL)
    printed = capsys.readouterr().err or f"{caught[0].message}\n"
    assert printed.endswith("\n") and printed[:-1].isprintable() and ".ckpt" in printed
    assert printed.count("lightning_patches: all is well") == 1 and not printed.startswith("lightning_patches: all")
