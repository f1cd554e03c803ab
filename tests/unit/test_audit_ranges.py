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

import pytest

from lightning_patches.cli.audit.pins import are_compatible
from lightning_patches.engine import fingerprints
from lightning_patches.known import releases
from tests.support.variants import ROOT
from tests.unit.commands import Audit

sys.path.append(str(ROOT / "scripts"))
import _bounds  # isort: skip
import _releases  # isort: skip


@pytest.mark.parametrize("distribution", releases.DISTRIBUTIONS)
def test_table_has_every_known_release(distribution: str) -> None:
    every = [*fingerprints.older_releases(), *fingerprints.known_releases()]
    assert releases.known(distribution) == every[every.index(_bounds.FIRST[distribution]) :]


@pytest.mark.parametrize("distribution", _releases.DISTRIBUTIONS)
@pytest.mark.parametrize("version", ["2.2.5", "2.3.3", "2.6.6"])
def test_table_has_the_requirements_of_each_wheel(distribution: str, version: str) -> None:
    bounds = _bounds.read(_releases.wheel(distribution, version))
    assert bounds == releases.bounds(distribution, version) and {"python", "torch", "torchmetrics"} <= bounds.keys()


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
def test_range_resolves_to_the_release_of_pip(audit, tmp_path, index, python, lines, version):
    (name,) = (line.partition(">")[0] for line in lines if line.partition(">")[0] in releases.DISTRIBUTIONS)
    assert taken_by_pip(index, python, lines, tmp_path).get(name) == version
    text = "".join(f"  - {line}\n" for line in lines)
    file = audit.write("environment.yml", f"dependencies:\n- python={python}\n- pip:\n{text}")
    (one,) = audit.audited(file)
    assert one["version"] == version
    assert (audit.status == 3) is (version is None)


RESOLVED = """
- | lightning==2.2 | 2.2.0
- | lightning~=2.2.0 | 2.2.5
- | lightning~=2.2 | 2.6.6
- | Pytorch_Lightning[extra]~=2.3.0 | 2.3.3 | not pinned; 2.3.3 is the newest known release that matches
- | pytorch-lightning>=3 | -
- | https://host/a/pytorch_lightning-2.2.5-py3-none-any.whl | 2.2.5
- | git+https://github.com/Lightning-AI/pytorch-lightning@2.2.5 | 2.2.5
- | git+https://github.com/Lightning-AI/pytorch-lightning@master | -
- | pytorch-lightning~=1.7.0 | 1.7.7
- | pytorch-lightning<2 | 1.9.5
- | lightning<2 | 1.9.5
- | lightning==1.9.5 | 1.9.5
- | pytorch-lightning>=1.5,<1.6 | 1.5.10.post0
- | pytorch-lightning==1.6.* | 1.6.5.post0
- | pytorch-lightning<=1.8.3 | 1.8.3
- | lightning>=1.9,!=2.6.6 | 2.6.5
- | lightning>=2.6.1,<2.6.4 | 2.6.1
- | pytorch-lightning<1.5 | -
- | lightning<1.8 | -
- | lightning=2.2.4 | 2.2.4
- | lightning=2.2.* | 2.2.5
- | lightning=2.* | 2.6.6
- | lightning=2.2 | 2.2.5
- | conda-forge::pytorch-lightning=2.2.4=py_0 | 2.2.4
- | lightning 2.2.4 | 2.2.4
- | lightning^2.1 | 2.6.6
environment.yml | - lightning=2.* | 2.6.6
environment.yml | - lightning=2.2.* | 2.2.5
environment.yml | - lightning=2.2 | 2.2.5
environment.yml | - lightning 2.2.* | 2.2.5
environment.yml | - lightning>=2.1,<2.3 | 2.2.5
environment.yml | - conda-forge::lightning=2.2.5=pyhd8ed1ab_0 | 2.2.5
environment.yml | - lightning[version='>=2.1,<2.3'] | 2.2.5
environment.yml | - lightning 1.9.*|2.2.* | 2.2.5
environment.yml | - lightning~=2.2.0 | 2.2.5
environment.yml | - lightning >=2.0.*,<2.1a0 | 2.0.9.post0
environment.yml | - pytorch-lightning=1.7 | 1.7.7
environment.yml | - lightning 1.9.*|2.2.* & - python 3.8.*|3.11.* | 2.2.5
environment.yml | - python=3.9 & - lightning | 2.6.0 | and allows python
environment.yml | - python=3.8.10 & - lightning | 2.3.3 | and allows python
environment.yml | - python=3.8.10 & - pytorch-lightning | 2.4.0 | and allows python
environment.yml | - pip: &   - lightning==2.2.5 ; python_version<'3.9' & \
  - lightning==2.6.6 ; python_version>='3.9' & - python=3.8 | 2.2.5
environment.yml | - pip: &   - lightning==2.2.5 ; python_version<'3.9' & \
  - lightning==2.6.6 ; python_version>='3.9' & - python=3.12 | 2.6.6
pyproject.toml | [tool.poetry.dependencies] & pytorch-lightning = "^2.2" | 2.6.6
pyproject.toml | [tool.poetry.dependencies] & pytorch-lightning = "~2.2.1" | 2.2.5
pyproject.toml | [tool.poetry.dependencies] & pytorch-lightning = "2.2.*" | 2.2.5
pyproject.toml | [tool.poetry.dependencies] & pytorch-lightning = ">=2.1,<2.3" | 2.2.5
pyproject.toml | [tool.poetry.dependencies] & pytorch-lightning = "*" | 2.6.6
pyproject.toml | [tool.poetry.dependencies] & python = "^3.8" & lightning = "*" | 2.3.3
pyproject.toml | [project] & requires-python = ">=3.8" & dependencies = ["lightning"] | 2.6.6
pyproject.toml | [project] & requires-python = ">=3.9" & dependencies = ["lightning"] & [tool.pdm] | 2.6.0
pyproject.toml | [project] & requires-python = ">=3.8,<3.9" & dependencies = ["lightning"] | 2.3.3 | and allows python
Pipfile | [packages] & lightning = "*" & [requires] & python_version = "3.9" | 2.6.0
Dockerfile | FROM python:3.9-slim & RUN pip install lightning | 2.6.0 | and allows python
Dockerfile | FROM python:3.8 & RUN pip install torch==2.0.1 & RUN pip install pytorch-lightning | -
requirements.txt | lightning>=2.0 & lightning<2.3 | 2.2.5
requirements.txt | pytorch-lightning==1.6.* & torch==1.8 | 1.6.5.post0
requirements.txt | lightning==2.6.6 & torch==1.13.1 | 2.6.6
requirements.txt | lightning>=2 & torchvision==0.15.2+cu118 | 2.3.3
requirements.txt | pytorch-lightning>=1.6 & torchaudio==0.12.1 | 2.1.4
requirements.txt | lightning>=2 & torch @ https://a.org/torch-1.13.1-cp310-cp310-linux_x86_64.whl | 2.2.5
requirements.txt | lightning<=1.8.0 | -
requirements.txt | lightning==1.8.0 | 1.8.0
"""
"""Name of a file, or ``-`` for the command line | its lines | the release | words of the note."""

WITH_TORCH = """
requirements.txt | torch==1.13.1 & lightning>=2.0
included.txt | lightning>=2.0 & -c pins.txt
pyproject.toml | [project] & name = "x" & dependencies = ["lightning>=2.0", "torch==1.13.1"]
pyproject.toml | [tool.poetry.dependencies] & lightning = ">=2.0" & torch = "~1.13"
pyproject.toml | [project.optional-dependencies] & train = ["lightning>=2.0", "torch==1.13.1"]
Pipfile | [packages] & lightning = ">=2.0" & torch = "==1.13.1"
pixi.toml | [dependencies] & lightning = ">=2.0" & pytorch = "1.13.*"
environment.yml | - pytorch=1.13.1=py3.10_cuda11.7 & - lightning>=2.0
environment.yml | - pip: &   - torch==1.13.1 &   - lightning>=2.0
Dockerfile | FROM a & RUN pip install 'lightning>=2.0' torch==1.13.1
Dockerfile | FROM a & COPY pins.txt . & RUN pip install 'lightning>=2.0' -r pins.txt
train.ipynb | {"cells": [{"cell_type": "code", "source": "!pip install torch==1.13.1 'lightning>=2.0'"}]}
action.yml | runs: &   steps: &   - run: pip install torch==1.13.1 'lightning>=2.0'
"""
SEPARATE = """
Dockerfile | FROM pytorch/pytorch:1.13.1-cuda11.6 & RUN pip install 'lightning>=2.0'
Dockerfile | FROM a & RUN pip install torch==1.13.1 & RUN pip install 'lightning>=2.0'
environment.yml | - pytorch=1.13.1 & - pip: &   - lightning>=2.0
pyproject.toml | [project] & dependencies = ["lightning>=2.0"] & optional-dependencies.a = ["torch==1.13.1"]
pixi.toml | [feature.a.dependencies] & lightning = ">=2.0" & [feature.b.dependencies] & pytorch = "==1.13.1"
requirements.txt | lightning>=2.0 & torch==1.13.1 & torch==2.6.0
"""
"""Files that leave open which torch is installed, since pip may replace a torch that an earlier command installed."""
ROWS = [
    *RESOLVED.strip().splitlines(),
    *(
        f"{row} | 2.2.5 | 2.2.5 is the newest known release that matches and allows torch"
        for row in WITH_TORCH.strip().splitlines()
    ),
    *(f"{row} | - | 2.6.6 | 2.2.5 with torch==1.13.1" for row in SEPARATE.strip().splitlines()),
]


@pytest.mark.parametrize("row", ROWS)
def test_range_resolves_with_the_other_requirements_of_its_file(audit: Audit, row: str) -> None:
    name, text, version, *words = row.split(" | ")
    lines = [*(["dependencies:"] if name == "environment.yml" else []), *text.split(" & ")]
    audit.write("pins.txt", "torch==1.13.1\n")
    (one, *_) = audit.audited(text if name == "-" else audit.write(name, "\n".join(lines)))
    is_resolved = version != "-"
    assert (one["version"], one["known"], audit.status == 3) == (
        version if is_resolved else None,
        is_resolved,
        not is_resolved,
    )
    assert bool(one["bugs"]) is is_resolved
    assert all(part in one["notes"][0] for part in words)


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
