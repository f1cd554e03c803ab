"""What is published: a source archive from which everything can be checked, and metadata that says where to turn."""

import shutil
import subprocess
import sys
import tarfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.support.arms import ROOT

pytest.importorskip("setuptools")


def test_source_archive(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, tmp_path / "copy", ignore=ignored)
    command = [sys.executable, "-c", "from setuptools import setup; setup()", "-q", "sdist"]
    done = subprocess.run(command, cwd=tmp_path / "copy", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    (archive,) = (tmp_path / "copy" / "dist").iterdir()
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
        (information,) = [
            member for member in file.getmembers() if member.name.count("/") == 1 and "PKG" in member.name
        ]
        metadata = message_from_bytes(file.extractfile(information).read())  # type: ignore[union-attr]
    for folder in ("lightning_patches", "scripts", "tests", "upstream"):
        for path in (ROOT / folder).rglob("*.py"):
            assert "build" in path.parts or str(path.relative_to(ROOT)) in names
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "upstream").rglob("*") if path.is_file()} <= names
    assert {"setup.cfg", "pyproject.toml", "README.md", "LICENSE"} <= names
    assert metadata["Author"] and metadata.get_all("Project-URL")
    assert "lightning_patches/CHANGELOG.md" in names
