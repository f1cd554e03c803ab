"""``diagnose`` reads logs of any size and compression, from files, pipes and programs, within limits."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lightning_patches import cli
from lightning_patches.cli.diagnose import candidates, excerpt, facts, frames, read, streams, tracebacks
from lightning_patches.cli.diagnose.frames import Frame
from tests.unit.commands import Diagnose

DEVICE = "logged-metrics-device"
MESSAGE = "RuntimeError: No backend type associated with device type cpu"
HEAD = "Traceback (most recent call last):\n"
LIGHTNING = "/env/site-packages/lightning/"
TRACEBACK = f"""{HEAD}  File "{LIGHTNING}pytorch/trainer/connectors/logger_connector/result.py", line 241, in compute
    value = self.meta.sync(self.value)
{MESSAGE}
"""
COMMAND = [sys.executable, "-m", "lightning_patches", "diagnose", "--json", "--requirement", "lightning==2.2.5"]


def names_in(document: dict[str, Any]) -> list[str]:
    return [match["name"] for match in document["matches"]]


def left_out(document: dict[str, Any]) -> str:
    return " ".join(part["text"] for part in document["left_out"])


def usage(*command: str) -> tuple[int, str, int]:
    """Run `diagnose`, and return its exit status, its output and its memory in megabytes."""
    read_end, write_end = os.pipe()
    process = os.fork()
    if process == 0:
        os.dup2(write_end, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.execv(sys.executable, [*COMMAND, *command])
    os.close(write_end)
    with open(read_end) as file:
        output = file.read()
    _, status, used = os.wait4(process, 0)
    megabytes = used.ru_maxrss >> (20 if sys.platform == "darwin" else 10)
    return os.WEXITSTATUS(status), output, megabytes


@pytest.mark.slow
@pytest.mark.parametrize(
    "block", [b"\n" * (1 << 22), b"\0" * (1 << 22), b"\r" * (1 << 22), b"ValueError: x\n" * 300_000]
)
def test_memory_is_bounded_when_a_small_file_unpacks_to_a_large_one(tmp_path: Path, block: bytes) -> None:
    with gzip.open(tmp_path / "log.gz", "wb", 6) as file:
        for _ in range(40):
            file.write(block)
        file.write(b"\n" + TRACEBACK.encode())
    status, output, megabytes = usage(str(tmp_path / "log.gz"))
    assert status == 0 and DEVICE in output
    assert megabytes < 300


def test_four_million_empty_lines_take_seconds(diagnose: Diagnose) -> None:
    begun = time.process_time()
    document = diagnose.log(gzip.compress(b"\n" * 4_000_000 + TRACEBACK.encode()))
    assert time.process_time() - begun < 5
    assert document["matches"][0]["line"] == 4_000_004


@pytest.mark.parametrize("form", ["[{}]", '"{}"', '{{"msg": "{}"}}', '[0.1, "o", "{}"]'])
def test_escaped_empty_lines_are_bounded(form: str) -> None:
    assert len(read.from_text("", form.format("\\n" * 1_000_000)).lines) <= 200_000


def test_endless_pipe_is_read_up_to_the_limit(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            buffer[:] = (TRACEBACK * (len(buffer) // len(TRACEBACK) + 1)).encode()[: len(buffer)]
            return len(buffer)

    monkeypatch.setattr(streams, "MAX_BYTES", 20_000_000)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Endless()))
    document = diagnose.json("-", "--requirement", "lightning==2.2.5")
    assert DEVICE in names_in(document) and "Only the first" in left_out(document)


def test_both_ends_of_a_very_large_file_are_read(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(excerpt, "MAX_BYTES", 100_000)
    masked = TRACEBACK.replace(MESSAGE, "ValueError: in the middle")
    noise = "Epoch 0: 1%\n" * 200_000
    document = diagnose.log(f"{noise}{masked}{noise}{TRACEBACK}")
    assert document["matches"][0]["name"] == DEVICE and document["matches"][0]["cause"]
    assert "GB in the middle of the log were not read" in left_out(document)
    assert DEVICE in names_in(diagnose.log(f"{TRACEBACK}{noise}{noise}"))


def test_last_errors_are_kept_when_a_log_has_many(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excerpt, "MAX_BYTES", 50_000)
    monkeypatch.setattr(excerpt, "END", 1_000)
    words = ("".join(chr(97 + number // 26**place % 26) for place in range(3)) for number in range(5_000))
    retries = "".join(f"OSError: {word} {'x' * 80}\n" for word in words)
    document = diagnose.log(f"{retries}{TRACEBACK}{'bye' * 1_000}\n{'shutting down' * 5}\n" * 1)
    assert document["matches"][0]["name"] == DEVICE
    assert document["matches"][0]["line"] == retries.count("\n") + 4


def test_long_lines_around_an_error_do_not_replace_it(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    images = "".join(f'"{"A" * 700_000}{number}",\n' for number in range(40))
    document = diagnose.log(images + TRACEBACK + images)
    assert document["matches"][0]["name"] == DEVICE and document["matches"][0]["line"] == 44


@pytest.mark.parametrize("bars", [10_000, 400_000])
def test_error_behind_progress_bars_in_the_same_line_is_found(diagnose: Diagnose, bars: int) -> None:
    shown = "".join(f"Epoch 0: {number}%|### | {number}/100\r" for number in range(bars))
    document = diagnose.log(shown + TRACEBACK)
    assert document["matches"][0]["name"] == DEVICE and document["matches"][0]["line"] == 4


def test_lines_after_the_searched_ones_are_counted_and_the_end_is_read(diagnose, monkeypatch):
    monkeypatch.setattr(excerpt, "MAX_BYTES", 50_000)
    monkeypatch.setattr(excerpt, "BLOCK", 50_000)
    monkeypatch.setattr(excerpt, "END", 10_000)
    monkeypatch.setattr(excerpt, "MAX_SEARCHED", 20_000)
    document = diagnose.log("\n" * 400_000 + "ValueError: x\n" + "\n" * 100_000 + TRACEBACK)
    assert document["matches"][0]["line"] == 500_005 and "only its end was read" in left_out(document)


def test_many_logs_share_the_limits(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = "".join(f"step {number} loss=0.5\n" for number in range(10_000))
    for rank in range(40):
        diagnose.write(f"rank{rank}.log", noise + (TRACEBACK if rank == 7 else "") + noise)
    monkeypatch.setattr(excerpt, "MAX_BYTES", 1_000_000)
    found = read.logs([str(path) for path in diagnose.directory.iterdir()])
    assert all(one.left_out for one in found) and sum(len(one.lines) for one in found) < 300_000
    assert DEVICE in [match.record.name for one in found for match in candidates.find(one)]
    document = diagnose.json(*diagnose.directory.iterdir())
    assert [line for line in document["more"] if line.startswith("40 logs: The log is large")]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_truncated_file_is_read_up_to_its_end(diagnose: Diagnose, compress: Any) -> None:
    text = (TRACEBACK + "".join(f"{number**3:x}" for number in range(400_000))).encode()
    packed = compress(text)
    document = diagnose.log(packed[: -len(packed) // 8])
    assert DEVICE in names_in(document) and "ends too early" in left_out(document)
    whole = diagnose.log(packed + compress(b"\n" + TRACEBACK.encode()))
    assert "ends too early" not in left_out(whole) and names_in(whole) == [DEVICE]


def test_damaged_file_is_read_up_to_the_damage(diagnose: Diagnose) -> None:
    packed = gzip.compress((TRACEBACK + "".join(f"{number**3:x}" for number in range(40_000))).encode())
    assert len(packed) > 2 * streams.CHUNK
    document = diagnose.log(packed[:-8] + b"\1\2\3\4" + packed[-4:])
    assert DEVICE in names_in(document) and "is damaged" in left_out(document)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x1f\x8b\x08\0\0", "ends too early"),
        (b"\x1f\x8b\x08" + b"\xff" * 600, "cannot be unpacked"),
        (gzip.compress(lzma.compress(TRACEBACK.encode())), "is compressed more than once"),
        (b"PK\x03\x04" + b"\0" * 600, "is an archive: unpack it"),
        (gzip.compress(b"log.txt".ljust(257, b"\0") + b"ustar" + b"\0" * 400), "is an archive: unpack it"),
    ],
    ids=["empty", "damaged", "twice", "zip", "tar"],
)
def test_file_that_cannot_be_unpacked_is_named(diagnose: Diagnose, data: bytes, said: str) -> None:
    assert diagnose(diagnose.write("job.log", data)) == 2
    assert said in diagnose.err and "job.log" in diagnose.err


def test_missing_module_names_a_tool_that_unpacks(diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bz2", None)
    assert diagnose(diagnose.write("log", bz2.compress(TRACEBACK.encode()))) == 2
    assert "this Python has no bz2. Run `bzip2 -dc FILE | lightning-patches diagnose -`" in diagnose.err


@pytest.mark.parametrize("where", ["-", "/dev/stdin", "<(cat job.gz)"])
def test_pipes_are_read(tmp_path: Path, where: str) -> None:
    (tmp_path / "job.gz").write_bytes(gzip.compress(TRACEBACK.encode()))
    command = f"cat job.gz | {' '.join(COMMAND)} {where}"
    environ = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environ, capture_output=True, timeout=120)
    assert names_in(json.loads(done.stdout)) == [DEVICE], done.stderr


@pytest.mark.parametrize(("redirected", "said"), [("<&-", "is closed"), ("</dev/zero", "is a device")])
def test_standard_input_that_cannot_be_read_is_named(redirected: str, said: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(COMMAND)} - {redirected}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert "standard input cannot be read" in done.stderr and said in done.stderr


def run_program(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--", sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("noise", ["", "while True: sys.stderr.write('x\\n'); sys.stderr.flush(); time.sleep(0.02)"])
def test_child_that_outlives_the_program_does_not_block_diagnose(noise: str) -> None:
    """The child keeps the program's standard error open, and may write to it."""
    child = f"import sys, time\n{noise or 'time.sleep(60)'}"
    begun = time.monotonic()
    done = run_program(
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.DEVNULL)\n"
        f"sys.stderr.write({TRACEBACK!r})\nsys.exit(3)"
    )
    assert done.returncode == 3 and names_in(json.loads(done.stdout)) == [DEVICE]
    assert time.monotonic() - begun < 30


@pytest.mark.slow
def test_memory_is_bounded_when_a_program_writes_much(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(400): os.write(2, b'\\0' * 1_000_000)\nos._exit(5)"
    status, output, megabytes = usage("--", sys.executable, "-c", code)
    assert status == 5 and left_out(json.loads(output)) and megabytes < 300


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("time.sleep(60)", 130),
        ("try: time.sleep(60)\nexcept KeyboardInterrupt: time.sleep(1); sys.exit(7)", 7),
        ("signal.signal(signal.SIGINT, signal.SIG_IGN); print('on', flush=True); time.sleep(3); sys.exit(4)", 4),
    ],
    ids=["ends", "cleans up", "ignores it"],
)
def test_ctrl_c_reaches_the_program(code: str, status: int) -> None:
    """The end of the program is explained, and its exit status is kept."""
    said = "import sys, time, signal\nsys.stdout.write('on\\n'); sys.stdout.flush()\n"
    command = [item for item in COMMAND if item != "--json"]
    process = subprocess.Popen(
        [*command, "--", sys.executable, "-c", said + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    output, error = process.communicate(timeout=60)
    assert process.returncode == status
    assert f"ended with status {status}" in output
    assert ("The program was interrupted (KeyboardInterrupt)" in output) is (status == 130)


def test_program_that_inherits_ignored_ctrl_c_still_ignores_it() -> None:
    done = run_program(
        "import signal, sys\nsys.exit(signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert done.returncode == 0


def test_missing_program_is_a_usage_error(diagnose: Diagnose) -> None:
    assert diagnose("--", "no-such-program") == 2
    assert "no-such-program cannot be started: No such file or directory" in diagnose.err


def test_log_is_read_in_a_deleted_working_directory(diagnose: Diagnose) -> None:
    script = diagnose.write("train.py")
    log = diagnose.write("job.log", f'{HEAD}  File "{script}", line 1, in <module>\nValueError: mine\n')
    gone = diagnose.directory / "gone"
    gone.mkdir()
    before = os.getcwd()
    os.chdir(gone)
    try:
        gone.rmdir()
        assert "ValueError: mine" in diagnose.json(log)["verdict"]
    finally:
        os.chdir(before)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "RuntimeError: \n        An attempt has been made\n        to start",
            "RuntimeError: An attempt has been made",
        ),
        ("RuntimeError:\nreal text\n", "RuntimeError: real text"),
        ("RuntimeError: \n\n\nreal text\n", "RuntimeError: real text"),
        ("RuntimeError\nEpoch 1\n", "RuntimeError"),
        (f"RuntimeError: \n\n{HEAD}", "RuntimeError:"),
    ],
)
def test_message_that_begins_with_a_line_break_is_shown(text: str, words: str) -> None:
    error = read.from_text("", f'{HEAD}  File "/home/me/a.py", line 3, in <module>\n    f()\n{text}').raised[0]
    assert error.words == words


def test_traceback_that_ends_in_no_error_is_incomplete() -> None:
    (error,) = read.from_text("", f'{HEAD}  File "/home/me/a.py", line 3, in f\n    g()\nready\n').raised
    assert not error.is_complete


@pytest.mark.parametrize(
    ("paths", "own"),
    [
        (["/home/me/train.py", "/libs/lightning/pytorch/x.py", "/libs/lightning_utilities/core/x.py"], 1),
        (["/home/me/train.py", "/libs/lightning/pytorch/x.py", "/libs/other/x.py", "/libs/lightning/__init__.py"], 1),
        (["/home/me/train.py", "/home/me/libs/torch/nn/modules/module.py", "/home/me/libs/torchmetrics/metric.py"], 1),
        (["/task/train.py", "/task/lightning/pytorch/x.py", "/task/torchmetrics/x.py", "/task/net/model.py"], 2),
        (["train.py", "lightning/pytorch/x.py", "lightning/__init__.py"], 1),
        (["/home/me/lightning/train.py", "/env/site-packages/lightning/pytorch/x.py", "/home/me/lightning/net.py"], 2),
        (["C:\\me\\train.py", "C:\\libs\\lightning\\pytorch\\x.py", "C:\\libs\\torchmetrics\\metric.py"], 1),
        ([tracebacks.CELL, "/env/site-packages/lightning/pytorch/x.py"], 1),
    ],
)
def test_packages_in_a_target_directory_are_not_the_users_files(paths: list[str], own: int) -> None:
    found = facts.own([Frame(path, "f", 1) for path in paths])
    assert len([frame for frame in found if not frames.is_lightning(frame)]) == own


COLOURED = """\
Traceback (most recent call last):
  File \x1b[35m"/home/me/train.py"\x1b[0m, line \x1b[35m16\x1b[0m, in \x1b[35m<module>\x1b[0m
    \x1b[31m{"one": one, "group": group}[sys.argv[1]]\x1b[0m\x1b[1;31m()\x1b[0m
    \x1b[31m~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\x1b[0m\x1b[1;31m^^\x1b[0m
  File \x1b[35m"/env/site-packages/lightning/pytorch/utilities/combined_loader.py"\x1b[0m, line \x1b[35m5\x1b[0m, \
in \x1b[35mlength\x1b[0m
    return g(
        x,
        b={"a": x,
           "b": 2},
    )
  File \x1b[35m"/env/site-packages/lightning/pytorch/utilities/combined_loader.py"\x1b[0m, line \x1b[35m2\x1b[0m, \
in \x1b[35mg\x1b[0m
    \x1b[31mraise_first\x1b[0m\x1b[1;31m(x)\x1b[0m
    \x1b[31m~~~~~~~~~~~\x1b[0m\x1b[1;31m^^^\x1b[0m
\x1b[1;35mRuntimeError\x1b[0m: \x1b[35mPlease call `iter(combined_loader)` first.\x1b[0m
while training: a note
"""


def test_colours_markers_and_notes_of_newer_pythons_are_read() -> None:
    """As Python 3.13 writes them."""
    (error,) = read.from_text("", COLOURED).raised
    assert error.words == "RuntimeError: Please call `iter(combined_loader)` first."
    assert error.text.endswith("\nwhile training: a note")
    assert [(frame.function, frame.number, frame.source) for frame in error.frames] == [
        ("<module>", 16, '{"one": one, "group": group}[sys.argv[1]]()'),
        ("length", 5, "return g("),
        ("g", 2, "raise_first(x)"),
    ]
    assert error.is_complete


GROUP = f"""\
  + Exception Group Traceback (most recent call last):
  |   File "/home/me/train.py", line 16, in <module>
  |     group()
  | ExceptionGroup: two of them (3 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/me/train.py", line 6, in one
    |     length(1)
    |   File "{LIGHTNING}pytorch/trainer/connectors/logger_connector/result.py", line 241, in compute
    |     value = self.meta.sync(self.value)
    | {MESSAGE}
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/home/me/train.py", line 12, in <lambda>
    |     for f in (one, lambda: {{}}["k"]):
    |                            ~~^^^^^
    | KeyError: 'k'
    +---------------- 3 ----------------
    | ExceptionGroup: inner (1 sub-exception)
    +-+---------------- 1 ----------------
      | TypeError: deep
      +------------------------------------
"""


def test_first_error_of_an_exception_group_is_the_cause(diagnose: Diagnose) -> None:
    document = diagnose.log(GROUP)
    assert (document["matches"][0]["name"], document["matches"][0]["cause"]) == (DEVICE, True)
    other = GROUP.replace(MESSAGE, "ValueError: of my own")
    assert diagnose.log(other)["verdict"] == "I don't know this error: `ValueError: of my own`."
    later = f'{HEAD}  File "/home/me/b.py", line 1, in f\nOSError: later\n'
    cut_off = other.partition("    +---------------- 3")[0]
    for text in (other + later, f"{cut_off}Epoch 1\n{later}"):
        assert "OSError: later" in diagnose.log(text)["verdict"]


def test_failed_lazy_import_names_the_import(diagnose: Diagnose) -> None:
    """As PEP 810 describes it, with the use as the outer error."""
    document = diagnose.log(f"""\
{HEAD}  File "/home/me/train.py", line 2, in <module>
    lazy from lightning.pytorch import Trainerr
ImportError: lazy import of 'lightning.pytorch.Trainerr' raised an exception during resolution

The above exception was the direct cause of the following exception:

{HEAD}  File "/home/me/train.py", line 5, in <module>
    trainer = Trainerr()
              ^^^^^^^^
ImportError: cannot import name 'Trainerr' from 'lightning.pytorch'
""")
    assert "cannot import name 'Trainerr'" in document["verdict"]
    assert "train.py, line 5" in document["do"]


@pytest.mark.parametrize("source", ["import pytorch_lightning\nprint 'x'\n", "import lightning\0\n", "x = (\n"])
def test_unparsable_script_is_not_called_free_of_removed_names(diagnose: Diagnose, source: str) -> None:
    assert diagnose(diagnose.write("train.py", source)) == 2
    assert "cannot parse" in diagnose.err and "train.py" in diagnose.err and diagnose.out == ""


def test_single_surrogates_raise_nothing(diagnose: Diagnose) -> None:
    """In the source line of a frame, which is compared with the lines of releases."""
    frame = f'  File "{LIGHTNING}pytorch/trainer/trainer.py", line 544, in fit\n    call_\\ud800\n'
    text = (HEAD + frame + TRACEBACK.partition("\n")[2]).replace('"', '\\"').replace("\n", "\\n")
    for form in ('{"log": "%s"}', "msg='%s'"):
        assert DEVICE in names_in(diagnose.log(form % text))


def test_tags_of_a_page_are_removed_and_names_of_python_are_kept() -> None:
    page = f"<html><body>\n<style>a {{b}}\n</style><pre>{TRACEBACK.replace('compute', '<module>')}</pre></body></html>"
    (error,) = read.from_text("", page).raised
    assert (error.frames[0].function, error.words) == ("<module>", MESSAGE)


PLAIN = {
    "an escape in a source line": f'{HEAD}  File "a.py", line 3, in f\n    raise ValueError("a\\nb")\nValueError: a\n',
    "a printed traceback": f'{HEAD}  File "a.py", line 3, in f\n    print("{HEAD[:-1]}", "x")\nValueError: x\n',
    "tabs in lines": f"a\tb\n{TRACEBACK}a\tb\n",
    "commas": f"1,2,3\nERROR, {TRACEBACK}",
    "angle brackets": f"<module 'a'> loaded\n<Trainer object> {TRACEBACK}",
    "braces": "{not json}\n" + TRACEBACK,
}


@pytest.mark.parametrize("kind", PLAIN)
def test_plain_text_is_unchanged(kind: str) -> None:
    from lightning_patches.cli.diagnose import unwrap

    assert [text for _, text in unwrap.unwrapped(PLAIN[kind])] == PLAIN[kind].split("\n")


DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
FRAME = f'{HEAD}  File "/x/train.py", line 1, in <module>\n'
HOSTILE = {
    "quotes": lambda n: '"' * 300_000 * n + HEAD.strip() + "\\n" + '"' * 300_000 * n,
    "backslashes": lambda n: HEAD.strip() + "\\" * 500_000 * n + "n",
    "escaped tracebacks": lambda n: (HEAD.strip() + "\\n") * 20_000 * n,
    "escaped frames": lambda n: 'File "x", line 1\\n' * 40_000 * n,
    "tags": lambda n: "<html>" + "<" * 500_000 * n,
    "comments": lambda n: "<html>" + "<!--" * 100_000 * n,
    "scripts": lambda n: "<html>" + "<script>" * 80_000 * n,
    "attributes": lambda n: "<html><p " + 'a="' * 200_000 * n + ">",
    "quoted cells": lambda n: f'a,"{HEAD}' + '","' * 200_000 * n,
    "columns": lambda n: "a\t" * 300_000 * n + HEAD,
    "long integers": lambda n: "[" + "1" * 300_000 * n + "]",
    "deep objects": lambda n: '{"a":' * 100_000 * n,
    "events without line ends": lambda n: '[0.1,"o","x"]\n' * 20_000 * n,
    "broken paths": lambda n: ("/" + "a" * 99 + "\n") * 7_000 * n,
    "groups": lambda n: ("  +-+---------------- 1 ----------------\n    | " + HEAD) * 3_000 * n,
    "slashes": lambda n: FRAME + ("/" * 16_000 + "\n") * n + MESSAGE + "\n",
    "parentheses": lambda n: FRAME + ("(" + "pid=" * 15_000 + "\n" + MESSAGE + "\n") * n,
    "an entity": lambda n: "&lt; &#" + "9" * 5_000 * n + ";\n" + MESSAGE + "\n",
    "deep JSON": lambda n: '{"log":"' + 'x", "b":' + "[" * 3_000 * n + "]" * 3_000 * n + "}\n" + MESSAGE + "\n",
    "chained errors": lambda n: (FRAME + "ValueError: x\n" + DURING) * 1_000 * n + FRAME + MESSAGE + "\n",
    "a long word": lambda n: "a." * 50_000 * n + "Error\n" + MESSAGE + "\n",
    "quoted paths": lambda n: ('  File "' + "a" * 3_900 + "\n") * 50 * n,
    "brackets": lambda n: ("[" * 4_000 + "\n") * 50 * n,
    "links": lambda n: ("[a](b:" * 600 + "\n") * 50 * n,
    "escapes": lambda n: ("\x1b[\x1b]" * 1_000 + "\n") * 50 * n,
    "checkpoints": lambda n: ("a.ckptx " * 500 + "\n") * 50 * n + "Weights only load failed\n",
    "names": lambda n: ("lightning " * 400 + "\n") * 50 * n,
    "prefixes": lambda n: ("- " * 50 + "Traceback (most recent call last):\n") * 500 * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_is_proportional_to_the_size_of_hostile_texts(diagnose: Diagnose, kind: str) -> None:
    diagnose("warm up")
    took = []
    for size in (2, 4):
        log = diagnose.write("log.txt", HOSTILE[kind](size))
        begun = time.process_time()
        assert diagnose(log) in (0, 1)
        took.append(time.process_time() - begun)
    assert took[1] < 3 * took[0] + 0.5 and took[1] < 8, took


def test_endless_device_is_refused(diagnose: Diagnose) -> None:
    assert diagnose("/dev/zero") == 2
    assert "/dev/zero cannot be read" in diagnose.err
