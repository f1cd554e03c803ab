"""The published files: a complete source archive, and metadata with the project's links."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from email import message_from_bytes
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import lightning_patches
from lightning_patches.fork import diffs, wheel
from tests.support import availability
from tests.support.scripts import load
from tests.support.variants import ROOT

import _releases  # isort: skip

pytest.importorskip("setuptools")
PLACEHOLDER = "URL-OF-THIS-REPOSITORY"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("source") / "copy", ignore=ignored))


def setup(copy: Path, *command: str, **variables: str) -> None:
    python = [sys.executable, "-c", "from setuptools import setup; setup()", "-q"]
    environment = {**os.environ, **variables}
    done = subprocess.run([*python, *command], cwd=copy, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done


def test_installed_package_shows_the_diffs(copy: Path, tmp_path: Path) -> None:
    setup(copy, "build", f"--build-lib={tmp_path}")
    program = "import sys; from lightning_patches.cli import main; sys.exit(main(['show', '19813']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done
    (named,) = re.findall(r"^  (/.*\.patch)$", done.stdout, re.M)
    diff = (ROOT / "upstream" / "diffs" / "logged-metrics-device.patch").read_text()
    assert Path(named).read_text() == diff and f"{named}\n\n{diff}" in done.stdout


def test_installed_package_builds_the_fork(copy: Path, tmp_path: Path) -> None:
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
    """Builds the wheel from the archive, like ``build``. The second time, directory, time and umask differ."""
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


MINORS = (
    *(("pytorch-lightning", version) for version in ("1.8.6", "1.9.5", "2.0.9.post0")),
    *(("lightning", version) for version in ("2.1.4", "2.2.5", "2.3.3", "2.4.0", "2.5.6", "2.6.6")),
)
"""One release of each minor version. `lightning` 2.0 needs packages that are not in the test environment."""
NEEDED = ("torch", "torchmetrics", "jsonargparse[signatures]", "lightning-utilities", "fsspec[http]", "PyYAML", "tqdm")
"""Packages that a program with Lightning has; each installs its own requirements."""


@pytest.fixture(scope="module")
def sites(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two directories: the packages of an environment without this package, and the packages that it adds."""
    before, added = tmp_path_factory.mktemp("before"), tmp_path_factory.mktemp("added")
    availability.link_installed([*NEEDED, "setuptools"], before)
    setup(copy, "bdist_wheel", f"--dist-dir={added.parent / 'built'}")
    (built,) = (added.parent / "built").glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", *_releases.QUIET, "--target", str(added), str(built)]
    done = subprocess.run(pip, cwd=added, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    return before, added


def found(questions: set[str], *path: Path) -> dict[str, Any]:
    """Return the answers to questions in an environment with only these directories."""
    command = [sys.executable, "-I", "-S", availability.__file__, *map(str, path)]
    asked = json.dumps(sorted(questions))
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=120)
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    assert before.keys() == after.keys()
    return [question for question, answer in before.items() if after[question] != answer]


@pytest.mark.slow
def test_installing_the_package_changes_no_decision_of_lightning(sites: tuple[Path, Path], tmp_path: Path) -> None:
    """Lightning, torch, torchmetrics, lightning-utilities and jsonargparse find the same packages before and after."""
    before, added = sites
    modules = {path.name for path in added.iterdir() if path.suffix != ".dist-info"} - {"bin", "wrapt-stubs"}
    assert modules == {"lightning_patches", "_lightning_patches", "wrapt", "packaging"}
    names = ("torch", "torchmetrics", "lightning_utilities", "jsonargparse")
    asked_below = availability.questions(*(before / name for name in names))
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").touch()
    (tmp_path / "rich-15.0.0.dist-info").mkdir()
    (tmp_path / "rich-15.0.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: rich\nVersion: 15.0.0\n")
    settings = configparser.ConfigParser(delimiters=("=",))
    settings.read(ROOT / "setup.cfg")
    ours = {
        str(metadata.EntryPoint(*map(str.strip, line.split("=")), group))  # type: ignore[call-arg]
        for group, lines in settings["options.entry_points"].items()
        for line in lines.strip().splitlines()
    }
    for distribution, version in MINORS:
        release = _releases.unpacked(distribution, version)
        asked = availability.questions(release) | asked_below
        stock, with_us, with_rich = (found(asked, release, before, *more) for more in ((), (added,), (tmp_path,)))
        where = f"{distribution} {version}"
        assert changes(stock["answers"], with_us["answers"]) == [], where
        assert set(with_us["entry points"]) - set(stock["entry points"]) == ours, where
        # The questions are the right ones: rich would change the answers.
        assert len(asked) > 300 and any(
            one.startswith("rich") for one in changes(stock["answers"], with_rich["answers"])
        )


def test_source_archive_has_all_sources(copy: Path) -> None:
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


def test_published_files_have_provenance(copy: Path, tmp_path: Path) -> None:
    if PLACEHOLDER not in (ROOT / "setup.cfg").read_text():
        pytest.skip("this is a source archive, in which the address stands already")
    url = "https://example.org/somebody/some-name"
    tree = Path(shutil.copytree(copy, tmp_path / "tree", ignore=shutil.ignore_patterns("dist")))
    for name in load("build_release").TEXTS:
        assert PLACEHOLDER in (tree / name).read_text(encoding="utf-8"), name
    load("build_release").fill_in(tree, url)
    for path in tree.rglob("*"):
        if path.suffix in (".md", ".cfg", ".yaml", ".txt") and "tests" not in path.parts:
            assert PLACEHOLDER not in path.read_text(encoding="utf-8"), path
    setup(tree, "sdist")
    (archive,) = (tree / "dist").iterdir()
    with tarfile.open(archive) as file:
        (member,) = [one for one in file.getmembers() if one.name.count("/") == 1 and "PKG" in one.name]
        metadata = message_from_bytes(file.extractfile(member).read())  # type: ignore[union-attr]
    links = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert metadata["Home-page"] == url and {"Manual", "Changelog", "Issues"} <= set(links)
    page = metadata.get_payload() or metadata["Description"]
    named = re.findall(rf"\]\({url}/blob/v{lightning_patches.__version__}/([^)#]+)", page)
    named += [link.partition("/blob/main/")[2] for link in links.values() if "/blob/main/" in link]
    assert "upstream/MANUAL.md" in named and "lightning_patches/CHANGELOG.md" in named
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert re.findall(r"\]\((?!https://|#)", page) == []
    assert f"pip install git+{url}" in page


def test_conda_recipe_agrees_with_setup_cfg() -> None:
    yaml = pytest.importorskip("yaml")
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    recipe = yaml.safe_load((ROOT / "upstream" / "conda" / "meta.yaml").read_text())
    assert recipe["package"] == {"name": settings["metadata"]["name"], "version": lightning_patches.__version__}
    assert recipe["about"]["home"] == settings["metadata"]["url"]
    assert recipe["about"]["summary"] == settings["metadata"]["description"]
    assert recipe["about"]["license"] == settings["metadata"]["license"]
    needs = settings["options"]["install_requires"].split() + ["python" + settings["options"]["python_requires"]]
    assert sorted(needs) == sorted(line.replace(" ", "") for line in recipe["requirements"]["run"])
    (command,) = recipe["build"]["entry_points"]
    assert command == settings["options.entry_points"]["console_scripts"].strip()
