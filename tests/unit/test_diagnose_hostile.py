"""``diagnose`` of untrusted files ends soon, without a traceback, and passes on no control characters."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from lightning_patches import cli
from lightning_patches.cli.diagnose import lines, script

SYMPTOM = "RuntimeError: No backend type associated with device type cpu\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "/x/train.py", line 1, in <module>\n'
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
SLOW = {
    "slashes": lambda n: TRACEBACK + ("/" * 16_000 + "\n") * n + SYMPTOM,
    "parentheses": lambda n: TRACEBACK + ("(" + "pid=" * 15_000 + "\n" + SYMPTOM) * n,
    "an entity": lambda n: "&lt; &#" + "9" * 5_000 * n + ";\n" + SYMPTOM,
    "deep JSON": lambda n: '{"log":"' + 'x", "b":' + "[" * 3_000 * n + "]" * 3_000 * n + "}\n" + SYMPTOM,
    "chained errors": lambda n: (TRACEBACK + "ValueError: x\n" + DURING) * 1_000 * n + TRACEBACK + SYMPTOM,
    "a long word": lambda n: "a." * 50_000 * n + "Error\n" + SYMPTOM,
    "quoted paths": lambda n: ('  File "' + "a" * 3_900 + "\n") * 50 * n,
    "brackets": lambda n: ("[" * 4_000 + "\n") * 50 * n,
    "links": lambda n: ("[a](b:" * 600 + "\n") * 50 * n,
    "escapes": lambda n: ("\x1b[\x1b]" * 1_000 + "\n") * 50 * n,
    "checkpoints": lambda n: ("a.ckptx " * 500 + "\n") * 50 * n + "Weights only load failed\n",
    "names": lambda n: ("lightning " * 400 + "\n") * 50 * n,
    "prefixes": lambda n: ("- " * 50 + "Traceback (most recent call last):\n") * 500 * n,
}


@pytest.mark.parametrize("kind", SLOW)
def test_time_grows_linearly_with_the_size(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["diagnose", "warm up", "--json"])
    took = []
    for size in (2, 4):
        path = tmp_path / f"{size}.log"
        path.write_text(SLOW[kind](size))
        begun = time.process_time()
        assert cli.main(["diagnose", str(path)]) in (0, 1)
        took.append(time.process_time() - begun)
    assert took[1] < 3 * took[0] + 0.2 and took[1] < 3, took


def test_time_grows_linearly_with_the_depth_of_a_script() -> None:
    took = []
    for depth in (100, 200):
        begun = time.process_time()
        assert script.find("a.py", "import lightning as pl\n" + f"pl{'.a' * depth}\n" * 10) == []
        took.append(time.process_time() - begun)
    assert took[1] < 3 * took[0] + 0.2, took


@pytest.mark.parametrize("deep", ["pl" + ".a" * 50_000, "(" * 5_000 + ")" * 5_000, "-" * 100_000 + "1"])
def test_unparsable_script_is_reported(deep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(f"import lightning as pl\n{deep}\n")
    status = cli.main(["diagnose", str(tmp_path / "a.py")])
    err = capsys.readouterr().err
    assert status in (1, 2) and "Traceback" not in err
    assert status == 1 or "a.py" in err


def test_escape_sequences_are_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Removing one sequence leaves another one, which must also be removed."""
    text = (
        'Traceback (most recent call last):\n  File "/home/x/\x1b\x1b[1m]0;TITLE\x07\x1bcok.py", line 1, in <module>\n'
        '    main()\n  File "/v/lightning/pytorch/trainer/connectors/logger_connector/result.py", line 1, in f\n'
        + SYMPTOM
    )
    for said in (text, json.dumps({"exc_info": text}), text.replace("\n", "<br>\u202e")):
        (tmp_path / "a.log").write_text(said)
        cli.main(["diagnose", str(tmp_path / "a.log")])
        shown = capsys.readouterr().out
        assert not {one for one in shown if not one.isprintable()} - {"\n"}, ascii(shown)
    assert lines.clean("\x1b\x1b[1m[31mred\x9b2J") == "[31mred2J"


def test_endless_device_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", "/dev/zero"]) == 2
    assert "/dev/zero cannot be read" in capsys.readouterr().err
