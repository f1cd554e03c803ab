"""What is published: a source archive from which everything can be checked, and metadata that says where to turn."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from email import message_from_bytes
from pathlib import Path

import pytest

from lightning_patches.fork import diffs, wheel
from tests.support.arms import ROOT

import _releases  # isort: skip

pytest.importorskip("setuptools")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("source") / "copy", ignore=ignored))


def setup(copy: Path, *command: str, **variables: str) -> None:
    python = [sys.executable, "-c", "from setuptools import setup; setup()", "-q"]
    environment = {**os.environ, **variables}
    done = subprocess.run([*python, *command], cwd=copy, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done


def test_what_is_installed_shows_the_diffs(copy: Path, tmp_path: Path) -> None:
    setup(copy, "build", f"--build-lib={tmp_path}")
    program = "import sys; from lightning_patches.cli import main; sys.exit(main(['show', '19813']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done
    (named,) = re.findall(r"^  (/.*\.patch)$", done.stdout, re.M)
    diff = (ROOT / "upstream" / "diffs" / "logged-metrics-device.patch").read_text()
    assert Path(named).read_text() == diff and f"{named}\n\n{diff}" in done.stdout


def test_what_is_installed_builds_the_fork(copy: Path, tmp_path: Path) -> None:
    setup(copy, "build", f"--build-lib={tmp_path}")
    official = _releases.wheel("pytorch-lightning", "2.2.5")
    command = ["fork", str(official), "--output", str(tmp_path / "dist")]
    program = f"import sys; from lightning_patches.cli import main; sys.exit(main({command!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    (built,) = (tmp_path / "dist").iterdir()
    ours = wheel.write_wheel(wheel.make(official, wheel.default_set()), tmp_path / "of the checkout")
    assert built.name == ours.name == f"pytorch_lightning-2.2.5+patches.{diffs.NUMBER}-py3-none-any.whl"
    assert built.read_bytes() == ours.read_bytes()
    assert f"pip install --no-deps {built}\n" in done.stdout


def test_two_builds_of_one_tree_are_the_same_bytes(copy: Path, tmp_path: Path) -> None:
    """Built as ``build`` does, the wheel from the archive; in another directory, later, and with another umask."""
    built = []
    for number, when in enumerate((1_500_000_000, 1_600_000_000)):
        tree = Path(shutil.copytree(copy, tmp_path / f"tree {number}", ignore=shutil.ignore_patterns("dist")))
        for path in tree.rglob("*"):
            os.utime(path, (when, when))
            path.chmod(path.stat().st_mode | 0o020 * number)
        setup(tree, "sdist", SOURCE_DATE_EPOCH="1700000000")
        (archive,) = (tree / "dist").iterdir()
        with tarfile.open(archive) as file:
            file.extractall(tree / "unpacked")
        (unpacked,) = (tree / "unpacked").iterdir()
        setup(unpacked, "bdist_wheel", SOURCE_DATE_EPOCH="1700000000")
        (wheel,) = (unpacked / "dist").iterdir()
        built.append({file.name: file.read_bytes() for file in (archive, wheel)})
    assert sorted(built[0]) == sorted(built[1])
    assert [name for name, content in built[0].items() if built[1][name] != content] == []


def test_source_archive(copy: Path) -> None:
    setup(copy, "sdist")
    (archive,) = (copy / "dist").iterdir()
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
