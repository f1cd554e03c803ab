"""``pytest -p lightning_patches``: a user's test suite runs with the patches, as in the README."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.variants import ROOT, Variant, environment_of

SUITE = """
import lightning.pytorch, lightning_patches
def test_lightning_is_patched():
    verdicts = {entry.patch: entry.verdict for entry in lightning_patches.report()}
    assert verdicts["logged-metrics-device"] == "applied"
class Own:
    pass
def test_bug_occurs_without_the_patches(tmp_path):
    import torch
    torch.save({"hyper_parameters": {"own": Own()}}, tmp_path / "x.ckpt")
    lightning.pytorch.LightningModule.load_from_checkpoint(tmp_path / "x.ckpt")
"""


@pytest.mark.slow
@pytest.mark.parametrize("by", ["option", "pyproject.toml"])
@pytest.mark.parametrize("workers", [[], ["--numprocesses=1"]], ids=["one process", "xdist"])
def test_pytest_plugin_patches_and_its_log_is_diagnosed(tmp_path: Path, workers: list[str], by: str) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    variables = environment_of(Variant("lightning", "2.3.3"))

    manual = (ROOT / "upstream" / "MANUAL.md").read_text()
    settings = re.findall(r"^ +(\[tool\.pytest\.ini_options\])\n +(addopts = .*)\n", manual, re.M)
    (tmp_path / "pyproject.toml").write_text("\n".join(settings[0]) + "\n" if by == "pyproject.toml" else "")
    option = ["-p", "lightning_patches"] if by == "option" else []

    def python(*arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=200).stdout

    log = python("pytest", *option, "--tb=native", "-p", "no:cacheprovider", *workers)
    assert "1 failed, 1 passed" in log, log
    (tmp_path / "tests.log").write_text(log)
    assert "Known bug trusted-checkpoint-load" in python("lightning_patches", "diagnose", "tests.log")
