"""The answers of `diagnose` to 100 logs, to complete logs of silent bugs and common errors, and to lines and words.

One half of each was held back during development. 48 of the held-back logs were right at the first try. The tests
assert and print the counts of both halves.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lightning_patches import cli
from tests.answers.record import WRAPPED

HERE = Path(__file__).parent
LOGS = json.loads(gzip.decompress((HERE / "logs.json.gz").read_bytes()))
WHOLE = json.loads(gzip.decompress((HERE / "whole.json.gz").read_bytes()))
EXPORTS = json.loads(gzip.decompress((HERE / "exports.json.gz").read_bytes()))
SEEN_LINES, HELD_BACK_LINES, DRAWN_LINES, SEEN_WORDS, HELD_BACK_WORDS, OTHER_LINES = (
    [line.split(" | ", 1) for line in part.splitlines()[1:] if line and not line.startswith("#")]
    for part in re.split(
        "^# (?:held back|drawn|words|not Lightning's)", (HERE / "lines.txt").read_text("utf-8"), flags=re.M
    )
)


def answer(capsys: pytest.CaptureFixture[str], what: str) -> dict[str, Any]:
    cli.main(["diagnose", what, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def named(document: dict[str, Any]) -> str:
    """The record that the verdict is about, ``-`` for none."""
    matches = [match for match in document["matches"] if match["kind"] != "ruled out"]
    return next((match["name"] for match in matches if match["cause"]), matches[0]["name"] if matches else "-")


@pytest.mark.parametrize(
    ("seen", "right", "certain", "releases"), [(True, 50, 37, 47), (False, 49, 39, 49)], ids=["seen", "held back"]
)
def test_logs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, seen: bool, right: int, certain: int, releases: int
) -> None:
    """Return the number of right verdicts, of certain ones, and of logs whose release is among the named ones."""
    chosen = [one for one in LOGS if one["seen"] is seen]
    wrong, is_right, is_certain, is_told = [], 0, 0, 0
    for one in chosen:
        (tmp_path / "job.log").write_text(one["text"])
        document = answer(capsys, str(tmp_path / "job.log"))
        expected, name = one["expected"].split(" or "), named(document)
        is_right += name in expected
        is_certain += name in expected and any(match["cause"] and match["certain"] for match in document["matches"])
        is_told += one["release"].partition("==")[2] in document["written_by"]["releases"]
        if name not in expected:
            wrong.append((one["way"], one["release"], expected, name))
    with capsys.disabled():
        half = "seen" if seen else "held back"
        print(f"\n{half}: {is_right} of {len(chosen)} right, {is_certain} certain, release told of {is_told}")
    assert len(chosen) == 50
    assert is_right >= right and is_certain >= certain and is_told >= releases, wrong


@pytest.mark.parametrize("log", WHOLE, ids=lambda log: f"{log['expected']}, {log['release']}")
def test_whole_logs(capsys: pytest.CaptureFixture[str], tmp_path: Path, log: dict[str, Any]) -> None:
    """A silent bug that ends in another error some lines later, and the errors that need no patch."""
    (tmp_path / "job.log").write_text(log["text"])
    document = answer(capsys, str(tmp_path / "job.log"))
    assert named(document) == log["expected"], document["verdict"]
    if log["has_one_line"]:
        # the frames of 2.5.2's profiler are those of fixed releases as well
        is_sure = (log["expected"], log["release"]) != ("profiler-nested-actions", "lightning==2.5.2")
        assert document["matches"][0]["certain"] is is_sure


@pytest.mark.parametrize("form", EXPORTS["forms"])
def test_exports_of_tools_are_read(capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str) -> None:
    (tmp_path / "log").write_text(EXPORTS["forms"][form])
    document = answer(capsys, str(tmp_path / "log"))
    assert named(document) == EXPORTS["expected"], document["verdict"]
    match = next(match for match in document["matches"] if match["name"] == EXPORTS["expected"])
    assert match["text"].removeprefix("E   ") == "KeyError: 'pytorch-lightning_version'"
    has_frames = not form.endswith(("=line", "=no"))
    assert (EXPORTS["release"] in document["written_by"]["releases"]) is has_frames


@pytest.mark.parametrize(
    ("form", "before", "image"),
    [
        ("notebook", '   "outputs": [', '{{"data": {{"image/png": "{}"}}}},'),
        ("nbconvert --to html", "<body", '<img src="data:image/png;base64,{}">'),
    ],
)
def test_notebook_with_images_above_the_limit_is_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str, before: str, image: str
) -> None:
    text = EXPORTS["forms"][form]
    at = text.rindex(before) if form == "notebook" else text.index(before)
    at += len(before) if form == "notebook" else 0
    (tmp_path / "log").write_text(f"{text[:at]}\n{image.format('A' * 9_000_000)}\n{text[at:]}")
    document = answer(capsys, str(tmp_path / "log"))
    assert named(document) == EXPORTS["expected"], document["verdict"]
    assert document["left_out"] and EXPORTS["release"] in document["written_by"]["releases"]


@pytest.mark.parametrize("kind", WRAPPED)
def test_wrapped_tracebacks_are_read(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    """With the message, the line and all frames of the traceback itself."""
    text = EXPORTS["forms"]["pytest --tb=native"]
    text = text[text.index("Traceback") : text.rindex("=" * 20)]
    (tmp_path / "log").write_bytes(WRAPPED[kind](text))
    document = answer(capsys, str(tmp_path / "log"))
    assert named(document) == EXPORTS["expected"], document["verdict"]
    match = next(match for match in document["matches"] if match["name"] == EXPORTS["expected"])
    assert (match["text"], match["cause"]) == ("KeyError: 'pytorch-lightning_version'", True)
    assert EXPORTS["release"] in document["written_by"]["releases"]


@pytest.mark.parametrize(
    "log", [one for one in WHOLE if one["has_one_line"]], ids=lambda log: f"{log['expected']}, {log['release']}"
)
def test_last_line_alone_names_the_bug(capsys: pytest.CaptureFixture[str], log: dict[str, Any]) -> None:
    line = log["text"].rstrip().splitlines()[-1]
    assert log["expected"] in [match["name"] for match in answer(capsys, line)["matches"]], line


@pytest.mark.parametrize(
    ("lines", "right"),
    [(SEEN_LINES, 23), (HELD_BACK_LINES, 23), (DRAWN_LINES, 62), (SEEN_WORDS, 39), (HELD_BACK_WORDS, 36)],
    ids=["seen", "held back", "drawn", "words", "words held back"],
)
def test_lines(capsys: pytest.CaptureFixture[str], lines: list[list[str]], right: int) -> None:
    wrong = []
    for expected, line in lines:
        name = named(answer(capsys, line))
        if name not in expected.split(" or "):
            wrong.append((expected, line, name))
    with capsys.disabled():
        print(f"\n{len(lines) - len(wrong)} of {len(lines)} lines right")
    assert len(lines) - len(wrong) >= right, wrong


@pytest.mark.parametrize("line", [line for _, line in OTHER_LINES])
def test_error_of_other_software_names_no_patch_as_certain(capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert not [one for one in answer(capsys, line)["matches"] if one["patched"] and (one["certain"] or one["cause"])]


SHOWN = """\
Learning rate set to 0.01
Finished batch size finder, will continue with full run using batch size 64
Your `IterableDataset` has `__len__` defined.
Restored all states from the checkpoint at runs/last.ckpt
`Trainer.fit` stopped: `max_epochs=3` reached.
Traceback (most recent call last):
  File "/home/me/train.py", line 30, in <module>
    trainer.fit(net)
  File "/env/lib/python3.11/site-packages/lightning/pytorch/trainer/trainer.py", line 544, in fit
    call._call_and_handle_interrupt(
  File "/home/me/net.py", line 50, in training_step
    loss = self.loss(batch)
"""


@pytest.mark.parametrize("line", [line for _, line in OTHER_LINES])
def test_error_after_signs_of_a_silent_bug_names_no_patch_as_certain(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str
) -> None:
    (tmp_path / "job.log").write_text(SHOWN + line + "\n")
    matches = answer(capsys, str(tmp_path / "job.log"))["matches"]
    assert not [one for one in matches if one["patched"] and (one["certain"] or one["cause"])]
