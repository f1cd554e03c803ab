"""Errors that ``diagnose`` knows: as programs printed them, with the record that has to be found and its advice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lightning_patches import cli


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    cli.main(["diagnose", *arguments, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_libuv_is_blamed_on_the_build_of_torch_and_not_on_windows(capsys: pytest.CaptureFixture[str]) -> None:
    """The words of a torch on Linux that was built without libuv."""
    line = "RuntimeError: use_libuv was requested but PyTorch was built without libuv support, run with USE_LIBUV=0"
    document = answer(capsys, f"{line} to disable it.")
    assert [match["name"] for match in document["matches"]] == ["torch-without-libuv"]
    assert document["verdict"].startswith("No bug of Lightning: This build of torch has no libuv")
    assert "export USE_LIBUV=0" in document["do"] and "torch for Windows" not in json.dumps(document)
