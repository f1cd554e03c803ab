"""``audit`` of a range takes the other requirements of the file into account, like pip's resolver."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Optional

import pytest

from lightning_patches import cli
from lightning_patches.cli.audit.pins import are_compatible
from lightning_patches.engine import fingerprints
from lightning_patches.known import releases
from tests.support.variants import ROOT

sys.path.append(str(ROOT / "scripts"))
import _bounds  # isort: skip
import _releases  # isort: skip


@pytest.fixture(autouse=True)
def no_toggle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIGHTNING_PATCHES", raising=False)


def audit(capsys: pytest.CaptureFixture[str], path: Path, text: str) -> tuple[int, list[dict[str, Any]]]:
    path.write_text(text)
    status = cli.main(["audit", "--json", str(path)])
    return status, json.loads(capsys.readouterr().out)["audited"]


@pytest.mark.parametrize("distribution", releases.DISTRIBUTIONS)
def test_table_has_every_known_release(distribution: str) -> None:
    every = [*fingerprints.older_releases(), *fingerprints.known_releases()]
    assert releases.known(distribution) == every[every.index(_bounds.FIRST[distribution]) :]


@pytest.mark.parametrize("distribution", _releases.DISTRIBUTIONS)
@pytest.mark.parametrize("version", ["2.2.5", "2.3.3", "2.6.6"])
def test_table_has_the_requirements_of_each_wheel(distribution: str, version: str) -> None:
    bounds = _bounds.read(_releases.wheel(distribution, version))
    assert bounds == releases.bounds(distribution, version) and {"python", "torch", "torchmetrics"} <= bounds.keys()


# -------------------------------------------------------------------- against pip


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of an index with the releases of Lightning, and with many versions of their requirements.

    Its wheels have no code. The metadata of Lightning's releases are those of ``release_bounds.txt``.
    """
    directory = tmp_path_factory.mktemp("index")

    def add(name: str, version: str, python: str = "", *requires: str) -> None:
        project = directory / name
        project.mkdir(exist_ok=True)
        stem = f"{name.replace('-', '_')}-{version}"
        wheel = f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(project / wheel, "w") as archive:
            lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
            lines += [f"Requires-Dist: {one}" for one in requires]
            archive.writestr(f"{stem}.dist-info/METADATA", "\n".join([*lines, ""]))
            archive.writestr(
                f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{stem}.dist-info/RECORD", "")
        with open(project / "index.html", "a") as page:
            page.write(f'<a href="{wheel}" data-requires-python="{html.escape(python)}">{wheel}</a>\n')

    others = {"torch": {"1.12.1", "1.13.1", "2.0.1", "2.1.2", "2.3.1", "2.6.0", "2.9.0"}, "pydantic": {"2.5.0"}}
    for distribution in releases.DISTRIBUTIONS:
        for version in releases.known(distribution):
            bounds = dict(releases.bounds(distribution, version))
            if "yanked" in bounds or version.startswith("1."):
                continue
            add(distribution, version, bounds.pop("python"), *(f"{name}{spec}" for name, spec in bounds.items()))
            for name, spec in bounds.items():
                for number in re.findall(r"\d[\w.]*\d|\d", spec) if name != "torch" else ():
                    others.setdefault(name, {"0.0.1"}).update((number, f"{number.partition('.post')[0]}.1"))
    for name in others.keys() - set(releases.DISTRIBUTIONS):
        for version in others[name]:
            add(name, version)
    for version, torch in (("0.14.1", "1.13.1"), ("0.15.2", "2.0.1"), ("0.18.1", "2.3.1")):
        add("torchvision", version, "", f"torch=={torch}")
    return directory.as_uri()


def taken_by_pip(index: str, python: str, lines: list[str], tmp_path: Path) -> dict[str, str]:
    """Return the releases that pip would install, by package; empty without a solution."""
    command = [sys.executable, "-m", "pip", "--isolated", "install", "--dry-run", "--quiet", "--ignore-installed"]
    command += ["--index-url", index, "--only-binary=:all:", "--python-version", python, "--target", "x"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(
        [*command, "--report", "-", *lines],
        cwd=tmp_path, env={**environment, "PIP_CONFIG_FILE": os.devnull}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if done.returncode:
        assert "ResolutionImpossible" in done.stderr or "No matching distribution" in done.stderr, done
        return {}
    found = [one["metadata"] for one in json.loads(done.stdout)["install"]]
    return {one["name"]: one["version"] for one in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("python", "lines", "version"),
    [
        ("3.11", ["lightning>=2.0"], "2.6.6"),
        ("3.11", ["lightning>=2.0", "torch==1.13.1"], "2.2.5"),
        ("3.11", ["lightning>=2.0", "torch==2.0.1"], "2.3.3"),
        ("3.11", ["pytorch-lightning>=2.0", "torch<2.1"], "2.3.3"),
        ("3.11", ["lightning>=2.0", "torch<2.4"], "2.6.6"),
        ("3.11", ["lightning>=2.0", "torchvision==0.14.1"], "2.2.5"),
        ("3.11", ["lightning>=2.0", "lightning-utilities==0.8.0"], "2.3.0"),
        ("3.11", ["lightning>=2.0", "torchmetrics==0.7.0"], "2.5.2"),
        ("3.11", ["lightning>=2.0,<2.1", "pydantic>=2.5,<3"], "2.0.4"),
        ("3.11", ["lightning>=2.0", "packaging<22", "torch<3"], "2.6.0"),
        ("3.11", ["lightning>=2.0", "numpy>=3"], "2.6.6"),
        ("3.11", ["lightning>=2.0", "torch==1.10"], None),
        ("3.8", ["lightning>=2.0"], "2.3.3"),
        ("3.8", ["pytorch-lightning>=2.0"], "2.4.0"),
        ("3.9", ["lightning-fabric>=2.0"], "2.6.0"),
        ("3.8", ["lightning>=2.4"], None),
    ],
)
def test_range_resolves_to_the_release_of_pip(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    index: str,
    python: str,
    lines: list[str],
    version: Optional[str],
) -> None:
    (name,) = (line.partition(">")[0] for line in lines if line.partition(">")[0] in releases.DISTRIBUTIONS)
    assert taken_by_pip(index, python, lines, tmp_path).get(name) == version
    text = "".join(f"  - {line}\n" for line in lines)
    status, (one,) = audit(capsys, tmp_path / "environment.yml", f"dependencies:\n- python={python}\n- pip:\n{text}")
    assert one["version"] == version
    assert (status == 3) is (version is None)


# -------------------------------------------------------------------- every format

ONE_FILE = {
    "requirements.txt": "torch==1.13.1\nlightning>=2.0\n",
    "included.txt": "lightning>=2.0\n-c pins.txt\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["lightning>=2.0", "torch==1.13.1"]\n',
    "poetry/pyproject.toml": '[tool.poetry.dependencies]\nlightning = ">=2.0"\ntorch = "~1.13"\n',
    "extra/pyproject.toml": '[project.optional-dependencies]\ntrain = ["lightning>=2.0", "torch==1.13.1"]\n',
    "Pipfile": '[packages]\nlightning = ">=2.0"\ntorch = "==1.13.1"\n',
    "pixi.toml": '[dependencies]\nlightning = ">=2.0"\npytorch = "1.13.*"\n',
    "environment.yml": "dependencies:\n- pytorch=1.13.1=py3.10_cuda11.7\n- lightning>=2.0\n",
    "pip/environment.yml": "dependencies:\n- pip:\n  - torch==1.13.1\n  - lightning>=2.0\n",
    "Dockerfile": "FROM a\nRUN pip install 'lightning>=2.0' torch==1.13.1\n",
    "copied/Dockerfile": "FROM a\nCOPY pins.txt .\nRUN pip install 'lightning>=2.0' -r pins.txt\n",
    "train.ipynb": '{"cells": [{"cell_type": "code", "source": "!pip install torch==1.13.1 \'lightning>=2.0\'"}]}',
    "action.yml": "runs:\n  steps:\n  - run: pip install torch==1.13.1 'lightning>=2.0'\n",
}


@pytest.mark.parametrize("name", ONE_FILE)
def test_range_takes_the_other_pins_of_the_file_into_account(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    (path.parent / "pins.txt").write_text("torch==1.13.1\n")
    status, (one,) = audit(capsys, path, ONE_FILE[name])
    assert (status, one["version"], one["known"]) == (1, "2.2.5", True)
    assert "2.2.5 is the newest known release that matches and allows torch" in one["notes"][0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Dockerfile", "FROM pytorch/pytorch:1.13.1-cuda11.6\nRUN pip install 'lightning>=2.0'\n"),
        ("Dockerfile", "FROM a\nRUN pip install torch==1.13.1\nRUN pip install 'lightning>=2.0'\n"),
        ("environment.yml", "dependencies:\n- pytorch=1.13.1\n- pip:\n  - lightning>=2.0\n"),
        (
            "pyproject.toml",
            '[project]\ndependencies = ["lightning>=2.0"]\noptional-dependencies.a = ["torch==1.13.1"]\n',
        ),
        ("requirements.txt", "lightning>=2.0\ntorch==1.13.1\ntorch==2.6.0\n"),
    ],
)
def test_range_that_other_requirements_leave_open_is_not_resolved(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str
) -> None:
    """pip may replace a torch that an earlier command installed."""
    status, (one,) = audit(capsys, tmp_path / name, text)
    assert (status, one["version"], one["known"], one["bugs"]) == (3, None, False, [])
    assert "2.6.6" in one["notes"][0] and "2.2.5 with torch==1.13.1" in one["notes"][0]


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.8"\ndependencies = ["lightning"]\n', "2.6.6"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.8"\nlightning = "*"\n', "2.3.3"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.9"\ndependencies = ["lightning"]\n[tool.pdm]\n', "2.6.0"),
        ("Pipfile", '[packages]\nlightning = "*"\n[requires]\npython_version = "3.9"\n', "2.6.0"),
        ("Dockerfile", "FROM python:3.8\nRUN pip install torch==2.0.1\nRUN pip install pytorch-lightning\n", None),
        ("environment.yml", "dependencies:\n- python=3.8\n- pytorch-lightning\n", "2.4.0"),
        ("environment.yml", "dependencies:\n- lightning 1.9.*|2.2.*\n- python 3.8.*|3.11.*\n", "2.2.5"),
        ("requirements.txt", "lightning>=2.0\nlightning<2.3\n", "2.2.5"),
        ("requirements.txt", "pytorch-lightning==1.6.*\ntorch==1.8\n", "1.6.5.post0"),
        ("requirements.txt", "lightning==2.6.6\ntorch==1.13.1\n", "2.6.6"),
        ("requirements.txt", "lightning>=2\ntorchvision==0.15.2+cu118\n", "2.3.3"),
        ("requirements.txt", "pytorch-lightning>=1.6\ntorchaudio==0.12.1\n", "2.1.4"),
        (
            "requirements.txt",
            "lightning>=2\ntorch @ https://a.org/torch-1.13.1-cp310-cp310-linux_x86_64.whl\n",
            "2.2.5",
        ),
        ("requirements.txt", "lightning<=1.8.0\n", None),
        ("requirements.txt", "lightning==1.8.0\n", "1.8.0"),
    ],
)
def test_range_resolves_with_other_requirements(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str, version: Optional[str]
) -> None:
    _, (one, *_) = audit(capsys, tmp_path / name, text)
    assert one["version"] == version


@pytest.mark.parametrize(("python", "version"), [("3.8", "2.2.5"), ("3.12", "2.6.6")])
def test_markers_are_those_of_the_python_of_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, python: str, version: str
) -> None:
    text = "- pip:\n  - lightning==2.2.5 ; python_version<'3.9'\n  - lightning==2.6.6 ; python_version>='3.9'\n"
    _, (one,) = audit(capsys, tmp_path / "environment.yml", f"dependencies:\n{text}- python={python}\n")
    assert one["version"] == version


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        (">0.7.0", "", True),
        (">0.7.0", "<0.7.1", True),
        (">=2.1.0", "<2.1", False),
        ("==1.13.1+cu117", ">=1.13.0,<4.0", True),
        ("==1.13.*", ">=1.13.1", True),
        ("!=1.13.*,>=1.13", "<2", True),
        ("<2", ">=2.0rc1", False),
        ("~=3.8.2", "==3.8.*", True),
        (">=0.6.0.post0", "<0.6.0", False),
        ("===2.2.5", ">=2", True),
    ],
)
def test_compatible_specifiers_are_recognized(one: str, other: str, are: bool) -> None:
    assert are_compatible(one, other) is are is are_compatible(other, one)
