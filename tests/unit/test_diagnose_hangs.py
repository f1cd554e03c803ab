"""``lightning-patches diagnose`` reads reports of the hang watch and the gradient check from logs, files and pipes."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lightning_patches import cli
from lightning_patches.cli import hang as hang_command
from lightning_patches.ranks.hang import _viewer
from tests.unit.commands import Diagnose

SAID = (
    ("rank 1 died (killed by signal 9, by the kernel's OOM killer): the job cannot finish; rank 0 in barrier 2.",
     "Give the job more memory"),
    ("ranks 1, 2 died (killed by SIGSEGV): the job cannot finish; rank 0 in barrier 2.", "last output"),
    ("rank 1 ended with an error: ValueError: rank 3 died (x); y: the job cannot finish; rank 0 in barrier 2.",
     "Fix that error"),
    ("rank 1 never began; rank 0 in barrier 2.", "the launcher"),
    ("ranks 1 to 4, 6 and others do not answer (the process is stopped); rank 0 in barrier 2.",
     "does not run Python code"),
    ("rank 1 has left; rank 0 in barrier 2.", "ended before"),
    ("rank 1 is not watched; rank 0 in barrier 2.", "Start every rank"),
    ("rank 1 has not moved for 4 s, at train.py:3 in f; rank 0 in barrier 2.", "the line that the report names"),
    ("rank 1 has not moved for 4 s, at the program's end, which waits for thread x.", "at exit"),
    ("ranks 1, 2 work, at train.py:3 in f; rank 0 in barrier 2.", "only slow"),
    ("rank 1 in all_reduce 2; rank 0 in barrier 2.", "different collectives"),
    ("ranks 0, 1 in barrier 2; no rank is missing, the communication itself makes no progress.", "the network"),
    ("ranks 0, 1 in barrier 2; nobody is missing, the communication itself does not go on.", "the network"),  # 0.2.0
    ("rank 1 (host a, pid 2) has waited 9 s, in barrier 2, and the watch of rank 0 can't be "
     "reached.", "the process of rank 0"),
)  # fmt: skip
KINDS = (
    ([{"kind": "out of memory", "text": "was lost without an error message."}], "more memory"),
    ([{"kind": "died", "text": "has ended with a word of its own: OOM killer."}], "`dmesg`"),
    ([{"kind": "died", "cause": "killed by SIGSEGV"}, {"kind": "failed"}], "last output"),
    ([{"kind": "failed", "detail": "ValueError: rank 1 died (of what?)"}, {"kind": "waits"}], "Fix that error"),
    ([{"kind": "waits"}, {"kind": "waits"}], "the network"),
    ([{"kind": "waits"}, {"kind": "works"}], "only slow"),
    ([{"kind": "stands still", "place": "the program's end"}, {"kind": "waits"}], "at exit"),
    ([{"kind": "of a later version"}], "the process of rank 0"),
)
REPORT = SAID[7][0]
STARTED = "lightning_patches: lightning 2.2.5: 80 fixes ('lightning-patches status' lists them)\n"


def printed(verdict: str, prefix: str = "") -> str:
    return f"Epoch 0: 10%\n{prefix}lightning_patches: {verdict}\n{prefix}  missing: rank 1 does this.\n\nEpoch 1\n"


def line(verdict: Any = "rank 1 has not moved for 3 s", ranks: Any = (), time: Any = 1.0) -> str:
    return json.dumps({"time": time, "schema": 1, "verdict": verdict, "ranks": ranks}) + "\n"


@pytest.mark.parametrize(("verdict", "do"), SAID)
def test_report_is_read_from_a_job_log(diagnose: Diagnose, verdict: str, do: str) -> None:
    for prefix in ("", "[rank0]: ", "0: ", "[default0]:"):
        document = diagnose.log(printed(verdict, prefix))
        (hang,) = document["hangs"]
        assert document["ok"] and document["matches"] == []
        assert (hang["verdict"], hang["count"]) == (verdict.rstrip("."), 1)
        assert do in hang["do"] and document["closing"] == hang["do"]


@pytest.mark.parametrize(("ranks", "do"), KINDS)
def test_answer_depends_on_the_states_of_ranks(diagnose: Diagnose, ranks: Any, do: str) -> None:
    """The verdict's words are ignored, since they quote the program's error."""
    assert do in diagnose.log(line("rank 0 says works, and has left, and died (", ranks))["closing"]


def test_report_is_read_from_file_pipe_and_directory(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    assert diagnose.log(printed(REPORT) * 3)["hangs"][0]["count"] == 3
    for data in (printed(REPORT).encode(), line().encode() * 2):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert "has not moved" in diagnose.json("-")["hangs"][0]["verdict"]
    hangs = diagnose.write("hangs/hang-a-1.txt", printed(REPORT)).parent
    assert [Path(one["file"]).name for one in diagnose.json(hangs)["hangs"]] == ["hang-a-1.txt"]
    diagnose.write("hangs/hang-a-1.jsonl", line(ranks=[{"kind": "has left"}]))
    diagnose.write("hangs/hang-b-1.jsonl", line(time=0.5))
    (hangs / "hang-c-1.jsonl").mkdir()
    names = [Path(one["file"]).name for one in diagnose.json(hangs)["hangs"]]
    assert names == ["hang-b-1.jsonl", "hang-a-1.jsonl"]


@pytest.mark.parametrize(
    "text",
    [
        printed(REPORT) + "lightning_patches: no rank waits any more. The wait lasted 30 s or longer.\n",
        "lightning_patches: rank 3 has died: all ranks are ended now, with status 124.\n",
        "lightning_patches: rank 1 is not watched for hangs: no directory\n",
        "lightning_patches: 2 of 2 ranks are watched for hangs.\n",
        f"the manual says: {REPORT}\n",
        f"{STARTED}Epoch 0: 100%\n",
    ],
    ids=["over", "ended", "not watched", "watched", "no report", "start line"],
)
def test_other_lines_are_not_reports(diagnose: Diagnose, text: str) -> None:
    for name in ("job.log", "hang-job.txt"):
        assert diagnose.json(diagnose.write(name, text))["hangs"] == []


def test_report_at_a_block_boundary_is_read(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    from lightning_patches.cli.diagnose import excerpt

    monkeypatch.setattr(excerpt, "BLOCK", 1000)
    monkeypatch.setattr(excerpt, "MAX_BYTES", 500)
    for before in range(850, 1010, 7):
        for said in (f"lightning_patches: {REPORT}\n", line()):
            (hang,) = diagnose.log("#" * before + "\n" + said + "#\n" * 900)["hangs"]
            assert hang["count"] == 1


EVIL = "\x1b]0;t\x07\u202e\x9b31m\x00"


@pytest.mark.parametrize("form", ["json", "text", "log"])
def test_control_characters_of_a_report_are_removed(diagnose: Diagnose, form: str) -> None:
    name = f"hang-{EVIL[:-1]}\nfound: all is well-1.{'jsonl' if form == 'json' else 'txt'}"
    spoilt = f"rank 1 has not moved for 3 s, at {EVIL}"
    said = line(f"{spoilt}\nfound: all is well") if form == "json" else f"lightning_patches: {spoilt}\n"
    path = diagnose.write(name, said)
    for argument in (path.parent, path) if form != "log" else (path,):
        assert diagnose(argument) == 0
        assert "rank 1 has not moved" in diagnose.out and not set("\x1b\x07\u202e\x9b\x00") & set(diagnose.out)
        assert not any(one.startswith("found: all is well") for one in diagnose.out.splitlines())


def test_hang_show_lets_no_control_character_through(capsys, monkeypatch):
    monkeypatch.setattr(_viewer, "show", lambda: [{"text": f"rank 1 {EVIL} stands\n  at a line"}])
    assert cli.main([hang_command.__name__.rpartition(".")[2], "show"]) == 0
    shown = capsys.readouterr().out
    assert not set("\x1b\x07\u202e\x9b\x00") & set(shown) and shown.splitlines()[1] == "  at a line"


@pytest.mark.parametrize(
    "spoilt",
    [
        "[]\n7\n",
        *(line(time=time) for time in (None, "x", 10**400)),
        *(line(ranks=ranks) for ranks in (5, [5, None], [{"kind": {}, "place": [], "cause": 5}])),
        line(verdict=5),
        '{"time": 1, "verdict": "x", "ranks": [{"a":',
        '{"time": ' + "[" * 100_000 + "\n",
        '{"time": 1.0, "verdict": "x", "ranks": [{"a": ' + "[" * 600 + "]" * 600 + "}]}\n",
        '{"time": \ud800}\n'.encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
def test_damaged_report_raises_nothing(diagnose: Diagnose, spoilt: str) -> None:
    for content in (spoilt, line() + spoilt, spoilt.rstrip() + "\n" + line()):
        path = diagnose.write("hang-a-1.jsonl", content)
        for name in (path.parent, path):
            for arguments in ([], ["--json"]):
                assert diagnose(name, *arguments) == 0 or content == spoilt, (content, diagnose.out)


def test_large_file_takes_seconds(diagnose: Diagnose) -> None:
    """Measures the time and memory of this process."""
    weights = "weights only load failed. Unsupported global: GLOBAL x.Y\nsaved runs/a.ckpt\n" * 20_000
    for name, content, most in (("weights.log", weights, 3.0), ("hang-a-1.jsonl", line() * 800_000, 4.0)):
        path = diagnose.write(name, content)
        begin = time.process_time()
        document = diagnose.json(path)
        assert diagnose.status == 0 and time.process_time() - begin < most, name
    assert document["hangs"][0]["count"] == 800_000


def out_of_sync(before: str = "") -> str:
    return f"""{before}Traceback (most recent call last):
  File "/home/me/train.py", line 9, in <module>
    trainer.fit(model)
  File "/env/site-packages/lightning/pytorch/trainer/trainer.py", line 500, in fit
    call()
  File "/env/site-packages/lightning_patches/ranks/gradient_sync_check.py", line 424, in _tell
    raise GradientSyncError(message, new)
lightning_patches.ranks.gradient_sync_check.GradientSyncError: Ranks train different models. At step 3 (the first \
check): gradients of net.weight (ranks that agree: 0 | 1).
"""


def test_gradient_sync_error_is_explained(diagnose: Diagnose) -> None:
    document = diagnose.log(out_of_sync("#\n" * 200_000))
    (one,) = document["out_of_sync"]
    assert one["line"] == 200_008 and "gradients of net.weight" in one["text"]
    assert "fabric-submodule-sync" in one["do"] and document["closing"] == one["do"]
    assert diagnose(diagnose.write("job.log", out_of_sync(STARTED)), "--requirement", "lightning==2.2.5") == 0
    assert diagnose.out.startswith("The ranks train different models (GradientSyncError).\nDo: ")
    assert "fabric-submodule-sync" not in diagnose.out
