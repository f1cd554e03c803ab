"""Untrusted files: small ones take little time, and none ends a command with a traceback."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest

from lightning_patches import cli, doctor
from lightning_patches.cli import _files, _output, list_
from lightning_patches.cli._exit_status import UsageError
from lightning_patches.cli.audit.projects import collect_file
from lightning_patches.doctor import machine, script
from lightning_patches.doctor.facts import Facts

CONTROL = re.compile(r"[^\S\n\t ]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that a terminal interprets as commands."""

PIP, DOCKER, TOML, YAML, JSON = "requirements.txt", "Dockerfile", "pyproject.toml", "environment.yml", "Pipfile.lock"
NOTEBOOK, WORKFLOW = "train.ipynb", ".github/workflows/ci.yml"


def run_line(text: str) -> str:
    return f"FROM a\nRUN {text}\n"


def cell(text: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": text}]})


def step(text: str) -> str:
    return "jobs:\n  a:\n    steps:\n      - run: " + json.dumps(text) + "\n"


def doubled(number: int) -> str:
    """A YAML alias that expands to twice the previous one."""
    return f"b{number}: &a{number} [*a{number - 1},*a{number - 1}]\n"


GROWING: dict[str, tuple[str, Callable[[int], str]]] = {
    "slashes": (PIP, lambda n: "/" * n + " x\n"),
    "lines of slashes": (PIP, lambda n: ("/" * 4000 + " x\n") * (n // 4000 + 1)),
    "one word": (PIP, lambda n: "a" * n),
    "blanks": (PIP, lambda n: " " * n + "#\n"),
    "hashes": (PIP, lambda n: "a " + "#" * n + "\n"),
    "brackets": (PIP, lambda n: "a[" + "b," * n),
    "markers": (PIP, lambda n: "lightning ; " + "(" * n + "\n"),
    "many markers": (PIP, lambda n: "torch ; (python_version < '3'\n" * (n // 20)),
    "addresses": (PIP, lambda n: ("git+https://a" + "/@" * 1500 + "\n") * (n // 3000 + 1)),
    "continued": (PIP, lambda n: "\\\n" * n),
    "operators": (PIP, lambda n: "a" + "<=" * n),
    "pins": (PIP, lambda n: "".join(f"lightning==2.0.{i}\n" for i in range(n // 200))),
    "poetry": (TOML, lambda n: '[tool.poetry.dependencies]\nlightning = "' + "<" * n + '"\n'),
    "alternatives": (TOML, lambda n: '[tool.poetry.dependencies]\nlightning = "' + "1|" * n + '"\n'),
    "key": (TOML, lambda n: "a" + ".a" * n + " = 1\n"),
    "arrays": (TOML, lambda n: "a = " + "[" * n + "]" * n + "\n"),
    "tables": (TOML, lambda n: "".join(f"[a.b{i}]\nc = 1\n" for i in range(n // 100))),
    "digits": (TOML, lambda n: "a = " + "9" * n + "\n"),
    "number": (JSON, lambda n: '{"default": ' + "9" * n + "}"),
    "depth": (JSON, lambda n: '{"default": ' + "[" * n + "]" * n + "}"),
    "flow": (YAML, lambda n: "dependencies: " + "[" * n + "]" * n + "\n"),
    "block": (YAML, lambda n: "dependencies:\n" + "- " * n + "a\n"),
    "conda": (YAML, lambda n: "dependencies:\n  - " + "lightning=" * n + "\n"),
    "conda channel": (YAML, lambda n: "dependencies:\n  - " + "a::" * n + "\n"),
    "aliases": (YAML, lambda n: "a: &a0 [x]\n" + "".join(map(doubled, range(1, n // 100)))),
    "run slashes": (DOCKER, lambda n: run_line("/" * n + " install ")),
    "run": (DOCKER, lambda n: "FROM a\n" + "RUN pip install lightning==2.2.5\n" * (n // 200)),
    "run continued": (DOCKER, lambda n: run_line("pip install \\\n" + " a \\\n" * (n // 10))),
    "pips": (DOCKER, lambda n: run_line("pip " * n)),
    "quotes": (DOCKER, lambda n: run_line("'\"" * n)),
    "installs": (DOCKER, lambda n: run_line("pip install lightning==2.2.5 \\\n && " * (n // 200))),
    "variables": (DOCKER, lambda n: f"FROM a\nENV A={'a' * n}\nRUN echo {'$A' * n}\n"),
    "variable of variables": (DOCKER, lambda n: "ENV A=a\n" + "ENV A=$A$A$A$A\nRUN pip install $A\n" * (n // 100)),
    "heredocs": (DOCKER, lambda n: "FROM a\nEOF\n" + "RUN <<EOF\n" * (n // 10)),
    "mounts": (DOCKER, lambda n: run_line("--mount=type=bind,source=a,target=b " * (n // 50) + "ls")),
    "copies": (DOCKER, lambda n: "FROM a\n" + "COPY . .\nRUN pip install -r a/b\n" * (n // 200)),
    "cells": (NOTEBOOK, lambda n: cell("!pip install " + "lightning==2.2.5 " * (n // 200))),
    "imports": (NOTEBOOK, lambda n: cell(" " * n + "import\n" + "import " * n)),
    "workflow": (WORKFLOW, lambda n: step("pip install " + "/" * n)),
    "expressions": (WORKFLOW, lambda n: step("${{ " * n + " pip install")),
}  # fmt: skip
SCRIPTS: dict[str, Callable[[int], str]] = {
    "attributes": lambda n: "import lightning as pl\npl" + ".a" * n + "\n",
    "called attributes": lambda n: "import torch\ntorch" + ".a" * n + ".cuda()\n",
    "calls": lambda n: "f" + "()" * n + "\n",
    "sums": lambda n: "x = " + "1+" * n + "1\n",
    "elifs": lambda n: "if a:\n pass\n" + "elif a:\n pass\n" * (n // 10),
    "parentheses": lambda n: "(" * n + ")" * n,
    "digits": lambda n: "x = " + "9" * n + "\n",
    "devices": lambda n: "import torch\n" + "torch.zeros(1).cuda()\n" * (n // 20),
    "a long device": lambda n: "import torch\ntorch.zeros(\n" + "1,\n" * n + ").cuda()\n",
    "forks": lambda n: "Trainer(" + ", ".join(f"a{i}='fork'" for i in range(n // 20)) + ")\n",
}


def write(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return str(path)


def processor_time(act: Callable[[], Any]) -> float:
    begun = time.process_time()
    act()
    return time.process_time() - begun


def grows(act: Callable[[int], Callable[[], Any]], size: int) -> list[float]:
    """Return the growth in time for two doublings of the input; each time is the fastest of three."""
    took = [min(processor_time(act(size * factor)) for _ in range(3)) for factor in (1, 2, 4)]
    return [after / max(before, 0.02) for before, after in zip(took, took[1:])]


def is_understood_or_refused(command: list[str], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(command)
    done = capsys.readouterr()
    assert status in (0, 1, 2, 3), done
    assert "Traceback" not in done.err and "This is a bug" not in done.err, done
    assert status != 1 or not done.err, done
    assert status != 2 or name in done.err.splitlines()[0], done


@pytest.mark.parametrize("kind", GROWING)
def test_time_grows_linearly_with_the_file(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, made = GROWING[kind]
    is_understood_or_refused(["audit", write(tmp_path, name, made(20_000))], name, capsys)

    def act(size: int) -> Callable[[], Any]:
        path = write(tmp_path / str(size), name, made(size))

        def read() -> None:
            try:
                collect_file(path)
            except UsageError:
                pass

        return read

    ratios: list[list[float]] = []
    while not ratios or (max(ratios[-1]) >= 3 and len(ratios) < 3):  # repeated, since the machine may be busy
        ratios.append(grows(act, 10_000))
    assert max(ratios[-1]) < 3, ratios


@pytest.mark.parametrize("kind", SCRIPTS)
def test_time_grows_linearly_with_the_script(kind, tmp_path, capsys, monkeypatch):
    made = SCRIPTS[kind]
    monkeypatch.setattr(machine, "gather", lambda **options: Facts(script=options["script"]))
    path = write(tmp_path, "train.py", made(50_000))
    for command in (["doctor", "--no-torch", path], ["status", "--script", path]):
        is_understood_or_refused(command, "train.py", capsys)

    def act(size: int) -> Callable[[], Any]:
        source = made(size).encode()

        def look() -> None:
            try:
                with _files.parsing("train.py"):
                    list(script.look_through(source))
            except UsageError:
                pass

        return look

    ratios: list[list[float]] = []
    while not ratios or (max(ratios[-1]) >= 3 and len(ratios) < 3):
        ratios.append(grows(act, 5_000))
    assert max(ratios[-1]) < 3, ratios


WRONG = [
    (TOML, "[project]\ndependencies = [1]\n"),
    (TOML, "project = 1\n"),
    (TOML, "[tool]\npoetry = [1]\n"),
    (TOML, "[project]\ndependencies = 'lightning'\nrequires-python = 3\n"),
    ("uv.lock", "package = 1\n"),
    ("uv.lock", "[[package]]\nversion = '2'\n"),
    ("uv.lock", "[[package]]\nname = 1\nversion = 2\n"),
    ("Pipfile", "packages = 1\n[requires]\npython_version = 3\n"),
    ("pixi.toml", "feature = 1\n"),
    ("pixi.lock", "packages: [1]\n"),
    ("conda-lock.yml", "package: [{name: [], version: {}}]\n"),
    (YAML, "dependencies: [[1], {pip: 1}, null]\n"),
    (YAML, "a: !!python/object:os.system [x]\n"),
    (YAML, "? [a]\n: b\n"),
    (YAML, "a: *b\n"),
    (YAML, "a: &a [*a]\ndependencies: *a\n"),
    (YAML, "\x00"),
    (JSON, '{"default": [1]}'),
    (JSON, '{"default": {"lightning": {"version": {}}}}'),
    (NOTEBOOK, "[]"),
    (NOTEBOOK, '{"cells": 1}'),
    (NOTEBOOK, '{"cells": [1]}'),
    (NOTEBOOK, '{"cells": [{"cell_type": "code", "source": [1]}]}'),
    (NOTEBOOK, '{"worksheets": [{}]}'),
    (WORKFLOW, "jobs: {a: {steps: [1, {run: [1]}]}}\n"),
    (WORKFLOW, "jobs: 1\nruns: {steps: 1}\n"),
    (PIP, "-r\n-r \n-e\n--\n@\n;\nlightning @\n"),
    (PIP, "lightning==2.2.5 ; nothing == 'a'\n"),
    (PIP, "lightning===x\n"),
    (PIP, "lightning @ git+https://\n"),
    (PIP, "git+https://a/@1.2\n"),
    (DOCKER, "FROM\nRUN\nCOPY\nCOPY a\nENV\nARG\nWORKDIR\nFROM a AS\nCOPY [1]\nCOPY [\nCOPY --from=9 a b\n"),
    (DOCKER, "RUN pip install -r\nRUN cd\nRUN cd / && pip install -r x\nRUN --mount= x\nRUN --mount=a x\n"),
    (DOCKER, "FROM a\nCOPY a/**/*?[ b/\nRUN pip install -r b/a\n"),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted({name for name, _ in WRONG}))
def test_malformed_file_is_refused_or_empty(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, text in enumerate(text for other, text in WRONG if other == name):
        path = write(tmp_path / str(number), name, text)
        for form in ("text", "json", "github", "markdown", "sarif"):
            is_understood_or_refused(["audit", path, "--format", form], name, capsys)


class TestOnlyRegularFiles:
    """No command waits for a pipe without a writer, or reads an endless file."""

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
    def test_pipe_is_not_read(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        pipe = tmp_path / PIP
        os.mkfifo(pipe)
        for command in (["audit"], ["doctor", "--no-torch"], ["status", "--script"]):
            assert cli.main([*command, str(pipe)]) == 2
            assert f"{pipe} cannot be read: it is not a regular file" in capsys.readouterr().err

    @pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no /dev/zero")
    @pytest.mark.parametrize("text", ["-r /dev/zero\n", "-c/dev/zero\n", "--requirement=/dev/zero\n", "-r link.txt\n"])
    def test_device_named_in_a_file_is_not_read(self, text, tmp_path, capsys):
        (tmp_path / "link.txt").symlink_to("/dev/zero")
        assert cli.main(["audit", write(tmp_path, PIP, text)]) == 2
        assert "is not in the project" in capsys.readouterr().err

    def test_impossible_file_name_is_reported(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for name in ("a\0b", "a" * 4000, "a\udcff"):
            assert cli.main(["audit", write(tmp_path, PIP, f"-r {name}\n")]) == 2
            assert "cannot be read: " in capsys.readouterr().err

    def test_large_file_is_bounded(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for command, name in ((["audit"], PIP), (["doctor", "--no-torch"], "a.py"), (["status", "--script"], "a.py")):
            with open(tmp_path / name, "wb") as file:
                file.truncate(1 << 33)
            assert cli.main([*command, str(tmp_path / name)]) == 2
            assert f"{name} cannot be read: it is larger than " in capsys.readouterr().err

    def test_files_that_include_each_other_are_read_once(self, tmp_path, capsys):
        for number in range(200):
            write(tmp_path, f"{number}.txt", f"-r {number}.txt\n-r {number + 1}.txt\n")
        assert cli.main(["audit", str(tmp_path / "0.txt")]) == 2
        assert "includes more than 100 files: the others were not read" in capsys.readouterr().err


class TestInternalErrors:
    def test_internal_error_prints_one_line(self, capsys, monkeypatch):
        def fail(args: Any) -> int:
            raise RuntimeError("inner\nlightning-patches: all is well\x1b]0;title\x07")

        monkeypatch.setattr(list_, "run", fail)
        monkeypatch.delenv(cli.TRACEBACK, raising=False)
        assert cli.main(["list"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("lightning-patches: RuntimeError: inner") and "Please report this line" in line
        assert not CONTROL.search(line)
        monkeypatch.setenv(cli.TRACEBACK, "1")
        assert cli.main(["list"]) == 2
        printed = capsys.readouterr().err
        assert "in fail" in printed and not CONTROL.search(printed)

    @pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (BrokenPipeError, 0), (MemoryError, 2)])
    def test_special_exit_statuses_are_kept(self, error, status, monkeypatch):
        def fail(args: Any) -> int:
            raise error

        monkeypatch.setattr(list_, "run", fail)
        assert cli.main(["list"]) == status


class TestWhatATerminalObeys:
    EVIL = "a\x1b\x1b[1m]0;title\x07\x9b31m\u202eb\r\nlightning-patches: all is well"

    def test_cleaning_one_sequence_assembles_no_other(self, capsys: pytest.CaptureFixture[str]) -> None:
        for text in (self.EVIL, "\x1b[\x1b[1mm", "\x1b\x1b\x1b]]"):
            _output.write(text.replace("\n", ""))
            _output.write(_output.styled(text.replace("\n", ""), "bold"))
            _output.write(_output.paragraph(text))
            _output.write_table(("A", "B"), [(text, text)])
            _output.complain(text)
        done = capsys.readouterr()
        assert not CONTROL.search(done.out + done.err)
        assert not any(line.startswith("lightning-patches:") for line in (done.out + done.err).splitlines())

    @pytest.mark.parametrize(
        "command", [["audit"], ["audit", "-r"], ["doctor", "--no-torch"], ["status", "--script"], ["run"], ["show"]]
    )
    def test_file_name_cannot_forge_a_line(self, command, tmp_path, capsys):
        for name in (self.EVIL, self.EVIL + ".toml"):
            for there in (True, False):
                path = tmp_path / name
                path.write_text("pass") if there else path.unlink()
                if command != ["run"] or not there:
                    cli.main([*command, str(path)])
        done = capsys.readouterr()
        assert not CONTROL.search(done.out + done.err)
        assert not any(line.startswith("lightning-patches: all") for line in (done.out + done.err).splitlines())


PIECES = [
    *("lightning==2.2.5", "pytorch-lightning", "lightning>=2,<2.3", "torch==2.1", "^2", "~=1.7.0", "lightning-patches"),
    *("\n\n\n #'\"[]{}:,@;/"),
    *("\\\n", "- ", "= ", "==", "()", ".a"),
    *("FROM python:3.11", "RUN pip install ", "COPY . .", "-r a.txt", "ENV A=", "$A", "${A:-b}", "&&", "<<EOF", "EOF"),
    *("[project]", "dependencies = ", "dependencies:\n", "[[package]]\n", "name = ", "version = ", "jobs:\n", "run: "),
    *("\x1b[31m", "\x1b]0;t\x07", "\x9b", "\u202e", "\x00", "\r", "\u2028", "\udcff", "\xe9", "9" * 50, "a" * 300),
    *("import lightning\n", "def f():\n    ", "torch.zeros(1).cuda()", "!pip install ", '"cells": '),
    "lightning-patches: all is well\n",
]
NAMES = (PIP, DOCKER, TOML, YAML, JSON, NOTEBOOK)
NAMES += ("uv.lock", "pixi.toml", "conda-lock.yml", "ci.yml", "train.py", "notes")


def test_no_command_prints_a_traceback_or_control_characters(tmp_path, capsys, monkeypatch):
    """Tries several hundred generated inputs, the same ones in each run."""
    chance = random.Random(0)
    monkeypatch.setattr(machine, "gather", lambda **options: Facts(script=options["script"]))
    monkeypatch.setattr(doctor, "run", lambda found: [])
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.chdir(tmp_path)
    for number in range(200):
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 40)))
        name = chance.choice(NAMES)
        path = write(tmp_path / str(number), name, text)
        word = text.replace("\0", "")[:200] or "a"
        forms = ([], ["--json"], ["--all"], ["--format", "github"], ["--format", "sarif"])
        ways = ("show", "audit", "list --source", "run", "status", "list --since", "audit --ignore")
        commands = [
            ["audit", path, *chance.choice(forms)],
            ["audit", str(tmp_path / str(number))],
            ["doctor", "--no-torch", path],
            ["status", "--script", path] if number % 10 == 0 else [word],
            [*chance.choice(ways).split(), word if word[0] != "-" else f"a{word}"],
        ]
        monkeypatch.delenv("LIGHTNING_PATCHES", raising=False)
        if number % 10 == 5:  # the toggle is untrusted text, too
            monkeypatch.setenv("LIGHTNING_PATCHES", word)
            shown = ("report", "report --json", "status", "audit", "autostart status", "hang show")
            commands = [command.split() for command in shown]
        for command in commands:
            status = cli.main(command)
            done = capsys.readouterr()
            printed = done.out + done.err
            assert isinstance(status, int) and not CONTROL.search(printed), (command, printed)
            assert "Traceback" not in printed and "This is a bug" not in printed, (command, printed)
            assert not any(line.startswith("lightning-patches: all is well") for line in printed.splitlines()), command
            assert status != 1 or not done.err.startswith("lightning-patches: "), (command, printed)
