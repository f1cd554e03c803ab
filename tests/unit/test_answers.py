"""The answers of `diagnose` to the logs, lines and words in ``logs/``.

- ``NAME.log``: a log of a real program, shortened. Its head says what the answer must have, see :func:`read_case`.
- ``short.txt``: short logs of events, frequent errors and bugs that the log excludes.
- ``words.txt``: lines and words, each with the records that are right answers.
- ``recorded.json.xz``: 100 logs of programs on 2.x releases, in the formats of terminals, launchers and test runners.
  One half was held back while `diagnose` was written; 48 of these 50 were right at the first try.
- ``whole.json.xz``: complete logs of silent bugs that end in another error, and of common errors.
- ``exports.json.xz``: one error, as notebooks, pytest and terminal recorders export it.

The history of ``tests/answers/record.py`` has the programs that the last three were recorded with.
"""

from __future__ import annotations

import bz2
import gzip
import html
import json
import lzma
import re
from pathlib import Path
from typing import Any, Callable, NamedTuple, Union

import pytest

from lightning_patches.cli.diagnose import describe, known
from tests.unit.commands import Diagnose

LOGS = Path(__file__).parent / "logs"
RECORDED, WHOLE, EXPORTS = (
    json.loads(lzma.decompress((LOGS / f"{name}.json.xz").read_bytes())) for name in ("recorded", "whole", "exports")
)


def main_record(document: dict[str, Any]) -> str:
    """Return the record of the verdict, ``-`` if there is none."""
    matches = [match for match in document["matches"] if match["kind"] != "ruled out"]
    return next((match["name"] for match in matches if match["cause"]), matches[0]["name"] if matches else "-")


def read_case(path: Path) -> tuple[dict[str, list[str]], str]:
    """Return the head and the log of a file.

    Keys of the head: requirement; cause (the record); do (text of the advice); says (any text of the answer); never (a
    text that the answer must not have); form (the record matches by a frame, and no other does); line alone (True if
    the record is found by the error's line); error (a line for ``{error}`` in the log; the log is read with each).
    """
    head, _, log = path.read_text("utf-8").partition("---\n")
    found: dict[str, list[str]] = {}
    for line in head.splitlines():
        if not line.startswith("#"):
            key, _, value = line.partition(": ")
            found.setdefault(key, []).append(value)
    assert found.keys() <= {"requirement", "cause", "do", "says", "never", "form", "line alone", "error"}, path
    return found, log


CASES = [
    pytest.param(head, log.replace("{error}", error), id=path.stem)
    for path in sorted(LOGS.glob("*.log"), key=lambda path: path.name)
    for head, log in [read_case(path)]
    for error in head.get("error", [""])
]


@pytest.mark.parametrize(("head", "log"), CASES)
def test_log_is_answered_with_cause_and_advice(diagnose: Diagnose, head: dict[str, list[str]], log: str) -> None:
    document = diagnose.json(diagnose.write("job.log", log), "--requirement", head["requirement"][0])
    first = document["matches"][0]
    assert (first["name"], first["cause"]) == (head["cause"][0], True), document["verdict"]
    assert all(text in document["do"] for text in head.get("do", ())), document["do"]
    assert all(text in json.dumps(document) for text in head.get("says", ()))
    assert not any(text in document["do"] for text in head.get("never", ())), document["do"]
    if "form" in head:
        assert [(match["kind"], match["ground"]) for match in document["matches"]] == [("found", "frame")]
    if "line alone" in head:
        errors = r"^ *((?:[\w.]+Error: \S|[\w.]+Exception: |.*finding module|.*An attempt).*)$"
        line = next(re.finditer(errors, log, re.M))[1]
        names = [match["name"] for match in diagnose.json(line)["matches"]]
        assert (head["cause"][0] in names) is (head["line alone"] == ["yes"]), line


SHORT = [
    pytest.param([one.split(": ", 1) for one in head], log, id=title)
    for block in (LOGS / "short.txt").read_text("utf-8").split("\n==== ")[1:]
    for first, _, log in [block.partition("\n")]
    for title, *head in [first.split(" | ")]
]


@pytest.mark.parametrize(("head", "log"), SHORT)
def test_short_log_is_answered(diagnose: Diagnose, head: list[list[str]], log: str) -> None:
    document = diagnose.json(diagnose.write("job.log", log))
    kinds = {match["name"]: match["kind"] for match in document["matches"]}
    main, answer = main_record(document), " ".join([document["verdict"], document["do"], *document["why"]])
    for key, text in head:
        if key == "unknown":
            assert main == "-" and text in document["verdict"], document["verdict"]
        elif key in ("found", "possible"):
            assert (main, kinds[main]) == (text, key), document["verdict"]
            assert document["verdict"].startswith(("Perhaps ", "Probably ")) is (key == "possible")
        elif key == "excluded":
            assert kinds[text] == "ruled out"
        else:
            assert (text in answer) is (key == "says"), answer


class Section(NamedTuple):
    """A section of ``words.txt``, see its head."""

    title: str
    how: str
    bound: int
    rows: tuple[tuple[str, str], ...]


def read_sections() -> list[Section]:
    found = []
    for part in re.split(r"^== ", (LOGS / "words.txt").read_text("utf-8"), flags=re.M)[1:]:
        head, *lines = (line for line in part.splitlines() if line and not line.startswith("#"))
        title, how, bound = head.split(" | ")
        rows = [(names, text) for names, *texts in (line.split(" | ") for line in lines) for text in texts]
        found.append(Section(title, how, int(bound), tuple(rows)))
    return found


SECTIONS = read_sections()


def is_right(document: dict[str, Any], names: set[str], how: str) -> bool:
    matches = document["matches"]
    if how == "uncertain":
        return not any(match["patched"] and (match["certain"] or match["cause"]) for match in matches)
    if how == "first":
        return main_record(document) in names
    assert {match["kind"] for match in matches} <= {"possible"}, document
    assert not matches or document["verdict"].startswith(("Perhaps ", "Probably "))
    if names == {"-"}:
        return not matches
    is_watch = "hang" in names and "LIGHTNING_PATCHES_HANG_TIMEOUT" in document["closing"]
    return is_watch or any(match["name"] in names for match in matches)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_lines_and_words_are_answered_with_the_expected_record(section: Section, diagnose: Diagnose) -> None:
    wrong = [
        (names, text)
        for names, text in section.rows
        if not is_right(diagnose.json(text), set(names.split(", ")), section.how)
    ]
    count = len(section.rows)
    with diagnose.capsys.disabled():
        print(f"\n{section.title}: {count - len(wrong)} of {count} right")
    is_secret = "unseen" in section.title
    assert count - len(wrong) >= section.bound, "" if is_secret else wrong


DESCRIPTIONS = [text for section in SECTIONS if section.title.startswith("descriptions") for _, text in section.rows]


@pytest.mark.parametrize("text", DESCRIPTIONS, ids=lambda text: text[:60])
def test_description_of_a_bug_is_never_answered_with_no_bug(text: str, diagnose: Diagnose) -> None:
    diagnose(text)
    assert not re.search(r"no bug(?! that fits)|not a bug|No release of|outside of Lightning", diagnose.out), (
        diagnose.out
    )


def test_conditions_are_about_records_and_occur_in_their_own_texts() -> None:
    records = {record.name: record for record in known.records()}
    for name, groups in describe.conditions().items():
        assert groups and all(word for group in groups for word in group), name
        own = {word for text in known.texts(records[name]) for word in describe.words(text)}
        if records[name].impact.symptoms:
            assert all(any(word <= own for word in group) for group in groups), name


SIGNS = """\
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


def test_error_of_other_software_is_never_a_certain_match(diagnose: Diagnose) -> None:
    for _, line in SECTIONS[-1].rows:
        document = diagnose.json(diagnose.write("job.log", f"{SIGNS}{line}\n"))
        assert is_right(document, set(), "uncertain"), line


@pytest.mark.parametrize(
    ("seen", "right", "certain", "releases"), [(True, 50, 37, 47), (False, 49, 39, 49)], ids=["seen", "held back"]
)
def test_recorded_logs_are_answered(diagnose: Diagnose, seen: bool, right: int, certain: int, releases: int) -> None:
    """Checks the number of right verdicts, of certain ones, and of logs whose release `diagnose` names."""
    chosen = [one for one in RECORDED if one["seen"] is seen]
    wrong, rights, certains, with_release = [], 0, 0, 0
    for one in chosen:
        document = diagnose.json(diagnose.write("job.log", one["text"]))
        expected, name = one["expected"].split(" or "), main_record(document)
        rights += name in expected
        certains += name in expected and any(match["cause"] and match["certain"] for match in document["matches"])
        with_release += one["release"].partition("==")[2] in document["written_by"]["releases"]
        if name not in expected:
            wrong.append((one["way"], one["release"], expected, name))
    assert len(chosen) == 50
    assert rights >= right and certains >= certain and with_release >= releases, wrong


@pytest.mark.parametrize("log", WHOLE, ids=lambda log: f"{log['expected']}, {log['release']}")
def test_whole_log_and_its_last_line_are_answered(diagnose: Diagnose, log: dict[str, Any]) -> None:
    document = diagnose.json(diagnose.write("job.log", log["text"]))
    assert main_record(document) == log["expected"], document["verdict"]
    if log["has_one_line"]:
        # 2.5.2's profiler has the same frames as fixed releases
        is_sure = (log["expected"], log["release"]) != ("profiler-nested-actions", "lightning==2.5.2")
        assert document["matches"][0]["certain"] is is_sure
        line = log["text"].rstrip().splitlines()[-1]
        assert log["expected"] in [match["name"] for match in diagnose.json(line)["matches"]], line


@pytest.mark.parametrize("form", EXPORTS["forms"])
def test_exports_of_tools_are_read(diagnose: Diagnose, form: str) -> None:
    document = diagnose.json(diagnose.write("log", EXPORTS["forms"][form]))
    assert main_record(document) == EXPORTS["expected"], document["verdict"]
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
def test_notebook_with_images_above_the_limit_is_read(diagnose: Diagnose, form: str, before: str, image: str) -> None:
    text = EXPORTS["forms"][form]
    at = text.rindex(before) if form == "notebook" else text.index(before)
    at += len(before) if form == "notebook" else 0
    document = diagnose.json(diagnose.write("log", f"{text[:at]}\n{image.format('A' * 9_000_000)}\n{text[at:]}"))
    assert main_record(document) == EXPORTS["expected"], document["verdict"]
    assert document["left_out"] and EXPORTS["release"] in document["written_by"]["releases"]


def prefixed(*prefixes: str) -> Callable[[str], str]:
    """Put the prefixes before the lines, in turns."""
    return lambda text: "".join(
        f"{prefixes[number % len(prefixes)]}{line}\n" for number, line in enumerate(text.splitlines())
    )


def docker(text: str) -> str:
    rows = ({"log": f"{line}\n", "stream": "stderr", "time": "2026-01-02T03:04:05Z"} for line in text.splitlines())
    return "".join(json.dumps(row) + "\n" for row in rows)


def escaped_column(text: str) -> str:
    """Return a column as databases export it."""
    cell = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return f"1\tINFO\tstarted\tnode1\n2\tERROR\t{cell}\tnode1\n"


def wrapped(text: str) -> str:
    """Break lines at 80 columns."""
    return "\n".join(line[at : at + 80] for line in text.split("\n") for at in range(0, len(line) or 1, 80))


WRAPS: dict[str, Callable[[str], Union[str, bytes]]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "mpirun": prefixed("[1,2]<stderr>:"),
    "Ray": prefixed("(RayTrainWorker pid=71, ip=10.0.0.4) "),
    "torchrun's tee": prefixed("[default0]:2026-01-02 03:04:05,678 ERROR "),
    "a code block": prefixed("    "),
    "syslog": prefixed(*(f"Jan 02 03:04:0{second} node train[42]: " for second in range(9))),
    "GitLab": prefixed("2026-01-02T03:04:05.12Z 00O "),
    "nodes": prefixed("node01: "),
    "glog": prefixed(*(f"[rank0]:E0612 12:34:56.78900{n} 139 torch/x.py:12] " for n in range(9))),
    "an exception group": prefixed("  | "),
    "80 columns": wrapped,
    "Hydra": lambda text: text.replace("Traceback", "[2026-01-02 03:04:05,678][__main__][ERROR] - Traceback", 1),
    "Kaggle": lambda text: json.dumps(
        [{"stream_name": "stderr", "time": 1.5, "data": f"{line}\n"} for line in text.split("\n")]
    ),
    "UTF-16 of PowerShell": lambda text: text.encode("utf-16"),
    "UTF-16 BE": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "HTML with br": lambda text: html.escape(text).replace("\n", "<br>"),
    "HTML with pre": lambda text: f"<pre class='log'>{html.escape(text)}</pre>\n",
    "gzip": lambda text: gzip.compress(text.encode()),
    "bzip2": lambda text: bz2.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
    "lzma": lambda text: lzma.compress(text.encode(), lzma.FORMAT_ALONE),
    "gzip in two parts": lambda text: gzip.compress(text[:200].encode()) + gzip.compress(text[200:].encode()),
    "gzip of UTF-16": lambda text: gzip.compress(text.encode("utf-16")),
    "gzip of Docker": lambda text: gzip.compress(docker(text).encode()),
    "gh run view --log": prefixed("test (3.11)\tRun pytest\t2026-01-02T03:04:05.1234567Z "),
    "a string of JSON": json.dumps,
    "a string of JSON in another": lambda text: json.dumps(json.dumps(text)),
    "JSON in JSON": lambda text: json.dumps({"log": json.dumps({"level": "error", "msg": f"failed: {text}"})}),
    "logfmt": lambda text: f'time="2026-01-02" level=error msg={json.dumps(text)} caller=main.go\n',
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    "TSV, escaped": escaped_column,
    "JUnit with CDATA": lambda text: (
        f"<testsuite><testcase name='a'><system-err><![CDATA[{text}]]></system-err></testcase></testsuite>"
    ),
}


@pytest.mark.parametrize("kind", WRAPS)
def test_wrapped_traceback_is_read(diagnose: Diagnose, kind: str) -> None:
    """The message, the line and all frames of the traceback are found."""
    text = EXPORTS["forms"]["pytest --tb=native"]
    text = text[text.index("Traceback") : text.rindex("=" * 20)]
    content = WRAPS[kind](text)
    document = diagnose.json(diagnose.write("log", content if isinstance(content, bytes) else content.encode()))
    assert main_record(document) == EXPORTS["expected"], document["verdict"]
    match = next(match for match in document["matches"] if match["name"] == EXPORTS["expected"])
    assert (match["text"], match["cause"]) == ("KeyError: 'pytorch-lightning_version'", True)
    assert EXPORTS["release"] in document["written_by"]["releases"]


@pytest.mark.parametrize("kind", ["a code block", "syslog", "GitLab", "80 columns", "Kaggle", "nodes"])
def test_wrapped_output_of_pytest_is_read(diagnose: Diagnose, kind: str) -> None:
    content = WRAPS[kind](EXPORTS["forms"]["pytest --tb=short"])
    document = diagnose.json(diagnose.write("log", str(content)))
    assert main_record(document) == EXPORTS["expected"], document["verdict"]
    assert EXPORTS["release"] in document["written_by"]["releases"]
