"""Run commands of ``lightning-patches`` in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Union

import pytest

from lightning_patches import cli


class Command:
    """Run one command.

    Args:
        name: the command.
        directory: the directory of :meth:`write`.
        capsys: captures the output.
    """

    status: int
    """The last exit status."""
    out: str
    """The last standard output."""
    err: str
    """The last standard error."""

    def __init__(self, name: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.name, self.directory, self.capsys = name, directory, capsys

    def write(self, name: str, content: Union[str, bytes] = "") -> Path:
        """Write a file and its directories. Return its path."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def __call__(self, *arguments: object) -> int:
        self.status = cli.main([self.name, *map(str, arguments)])
        self.out, self.err = self.capsys.readouterr()
        return self.status

    def json(self, *arguments: object) -> dict[str, Any]:
        self("--json", *arguments)
        document: dict[str, Any] = json.loads(self.out)
        assert document["ok"] is (self.status == 0)
        return document


class Audit(Command):
    """Run ``audit``."""

    def audited(self, *arguments: object) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json(*arguments)["audited"]
        return found

    def sarif(self, *arguments: object) -> dict[str, Any]:
        """Return the run of a SARIF document."""
        self(*arguments, "--format", "sarif")
        (run,) = json.loads(self.out)["runs"]
        return dict(run)


class Diagnose(Command):
    """Run ``diagnose``."""

    def log(self, content: Union[str, bytes], *arguments: str) -> dict[str, Any]:
        """Diagnose a log, by default that of lightning 2.2.5."""
        log = self.write("log.txt", content)
        return self.json(log, *(arguments or ("--requirement", "lightning==2.2.5")))
