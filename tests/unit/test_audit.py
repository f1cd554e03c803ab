"""``lightning-patches audit`` of files with release numbers, and of installed packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from lightning_patches import cli
from lightning_patches.engine import gate
from lightning_patches.known.unpatched import UNPATCHED
from lightning_patches.patch import GROUPS
from lightning_patches.patches import all_patches
from tests.support.variants import ROOT, Variant, environment_of

DEVICE = "logged-metrics-device"


@pytest.fixture(autouse=True)
def no_toggle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIGHTNING_PATCHES", raising=False)


def audit(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    status = cli.main(["audit", "--json", *arguments])
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is (status == 0)
    return status, document["audited"]


def names(audited: dict[str, Any]) -> set[str]:
    return {bug["name"] for bug in audited["bugs"]}


@pytest.mark.parametrize("bug", UNPATCHED, ids=lambda bug: bug.name)
def test_record_of_unpatched_bug_is_complete(bug: Any) -> None:
    assert bug.name not in {patch.name for patch in all_patches()}
    assert bug.group in GROUPS
    assert bug.title and bug.impact.summary and bug.why_not
    assert not gate.in_ranges(bug.move_to, bug.affected)
    assert bug.fixed_in is None or not gate.in_ranges(bug.fixed_in, bug.affected)


def test_release_has_its_known_bugs(capsys: pytest.CaptureFixture[str]) -> None:
    status, (one,) = audit(capsys, "--requirement", "lightning==2.2.5")
    mending = [patch for patch in all_patches() if not patch.warns]
    expected = {patch.name for patch in mending if gate.in_ranges("2.2.5", patch.affected_known)}
    assert names(one) == expected | {"lightning-app"}
    assert status == 1  # a bug without a patch
    bugs = {bug["name"]: bug for bug in one["bugs"]}
    assert bugs[DEVICE]["covered"] and bugs[DEVICE]["cover"] == "default"
    assert bugs[DEVICE]["drop_at"] == bugs[DEVICE]["fixed_in"] == "2.4.0"
    assert bugs["lightning-app"]["cover"] == "none" and bugs["lightning-app"]["move_to"] == "2.3.3"
    assert any("also installs the newest pytorch-lightning" in note for note in one["notes"])


@pytest.mark.parametrize(("version", "has"), [("2.0.0", True), ("2.4.0", True), ("2.5.0", False), ("2.6.6", False)])
def test_mid_epoch_resume_is_listed_for_affected_releases(
    capsys: pytest.CaptureFixture[str], version: str, has: bool
) -> None:
    _, (one,) = audit(capsys, "--requirement", f"pytorch-lightning=={version}")
    assert ("mid-epoch-resume" in names(one)) is has
    assert "lightning-app" not in names(one)


def test_exit_status_follows_fail_on_and_ignore(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ("--requirement", "pytorch-lightning==2.6.6")
    assert audit(capsys, *spec)[0] == 0
    assert audit(capsys, *spec, "--fail-on", "any")[0] == 1
    old = ("--requirement", "lightning==2.2.5")
    assert audit(capsys, *old)[0] == 1
    assert audit(capsys, *old, "--fail-on", "never")[0] == 0
    status, (one,) = audit(capsys, *old, "--ignore", "lightning-app")
    assert status == 0 and "lightning-app" not in names(one)
    monkeypatch.setenv("LIGHTNING_PATCHES", "off")
    status, (one,) = audit(capsys, *spec)
    assert status == 1
    assert not any(bug["covered"] for bug in one["bugs"])
    assert "LIGHTNING_PATCHES=off leaves it out" in {bug["reason"] for bug in one["bugs"]}


def test_opt_in_patch_is_not_covered_unless_selected(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    optional = [patch for patch in all_patches() if not patch.default]
    if not optional:
        pytest.skip("the catalogue has no opt-in patch")
    patch = optional[0]
    version = sorted(gate.affected_releases(patch))[0]
    ignored = [word for bug in UNPATCHED for word in ("--ignore", bug.name)]
    spec = ("--requirement", f"pytorch-lightning=={version}", *ignored)
    status, (one,) = audit(capsys, *spec)
    bug = next(bug for bug in one["bugs"] if bug["name"] == patch.name)
    assert (status, bug["cover"], bug["covered"]) == (0, "opt-in", False)
    assert f"default,{patch.name}" in bug["reason"]
    assert audit(capsys, *spec, "--fail-on", "opt-in")[0] == 1
    monkeypatch.setenv("LIGHTNING_PATCHES", "all")
    assert audit(capsys, *spec, "--fail-on", "opt-in")[0] == 0


@pytest.mark.parametrize("version", ["2.6.2", "2.6.3"])
def test_compromised_release_lists_only_the_compromise(capsys: pytest.CaptureFixture[str], version: str) -> None:
    status, (one,) = audit(capsys, "--requirement", f"lightning=={version}")
    assert status == 1
    assert [bug["name"] for bug in one["bugs"]] == ["compromised-release"]
    assert one["bugs"][0]["advisories"] == ["GHSA-w37p-236h-pfx3"]
    assert cli.main(["audit", f"lightning=={version}"]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"lightning {version} is a compromised release: nothing in it is patched")
    assert "1 known bug" not in said and "Upstream has fixed" not in said and "counts as applied" not in said


def test_range_resolves_to_the_newest_release(capsys: pytest.CaptureFixture[str]) -> None:
    _, (one,) = audit(capsys, "--requirement", "Pytorch_Lightning[extra]~=2.3.0")
    assert (one["distribution"], one["version"]) == ("pytorch-lightning", "2.3.3")
    assert one["notes"] == ["not pinned; 2.3.3 is the newest known release that matches"]
    status, (one,) = audit(capsys, "--requirement", "pytorch-lightning>=3")
    assert (status, one["version"], one["known"], one["bugs"]) == (3, None, False, [])


@pytest.mark.parametrize("version", ["2.7.0", "1.7.7", "9", "2.2.77"])
def test_unknown_release_has_no_bugs(capsys: pytest.CaptureFixture[str], version: str) -> None:
    status, (one,) = audit(capsys, f"lightning=={version}")
    assert (status, one["known"], one["bugs"]) == (3, False, [])
    assert cli.main(["audit", f"lightning=={version}"]) == 3
    text = capsys.readouterr().out
    assert f"lightning {version} is not a known release: its bugs are unknown" in text
    assert not any(words in text for words in ("Upstream has fixed", "LIGHTNING_PATCHES", "also installs"))
    assert audit(capsys, "lightning==2.2.5+cu118")[1][0]["known"]
    assert cli.main(["audit", f"lightning=={version}", "pytorch-lightning==2.6.2"]) == 1


def test_fabric_alone_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    _, (one,) = audit(capsys, "--requirement", "lightning-fabric==2.2.5")
    assert "fabric-submodule-sync" in names(one) and DEVICE not in names(one)


def test_included_requirements_files_are_audited(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("-r all.txt\npytorch-lightning==2.6.6 ; python_version < '3'\n")
    (tmp_path / "all.txt").write_text(
        "# training\ntorch>=2\nlightning==2.2.5 \\\n    --hash=sha256:00  # pinned\n-r more.txt\n./local\n--pre\n"
        "lightning-fabric @ https://example.org/x.whl\n"
    )
    status, audited = audit(capsys, "-r", str(tmp_path / "all.txt"))
    assert [(one["distribution"], one["version"]) for one in audited] == [
        ("lightning", "2.2.5"),
        ("lightning-fabric", None),
    ]
    assert status == 1
    assert [(one["file"], one["line"]) for one in audited] == [
        (str(tmp_path / "all.txt"), 3),
        (str(tmp_path / "all.txt"), 8),
    ]
    (tmp_path / "none.txt").write_text("torch\n")
    assert audit(capsys, "-r", str(tmp_path / "none.txt")) == (0, [])


LOCK = '[[package]]\nname = "numpy"\nversion = "2.0"\n[[package]]\nname = "lightning"\nversion = "2.2.5"\n'
PROJECTS = {
    "uv.lock": "version = 1\n" + LOCK,
    "poetry.lock": LOCK,
    "pdm.lock": LOCK,
    "pylock.toml": LOCK.replace("package", "packages"),
    "Pipfile.lock": '{"_meta": {}, "default": {"lightning": {"version": "==2.2.5"}, "numpy": {"version": "==2"}}}',
    "Pipfile": '[packages]\nlightning = "==2.2.5"\nnumpy = "*"\n',
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["numpy", "lightning==2.2.5"]\n',
    "dev/pyproject.toml": '[dependency-groups]\ntrain = ["lightning==2.2.5", {include-group = "x"}]\n',
    "poetry/pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.9"\nlightning = {version = "2.2.5"}\n',
    "environment.yml": "dependencies:\n  - python=3.11\n  - conda-forge::lightning=2.2.5\n",
    "env-gpu.yaml": "dependencies:\n  - pip\n  - pip:\n    - numpy\n    - lightning==2.2.5\n",
    "requirements.in": "lightning==2.2.5\n",
    "wheel.txt": "https://host/lightning-2.2.5-py3-none-any.whl\n",
    "named.txt": "numpy\nlightning @ https://host/lightning-2.2.5-py3-none-any.whl#sha256=00\n",
    "sdist.txt": "./dist/lightning-2.2.5.tar.gz\n",
    "egg.txt": "git+https://github.com/Lightning-AI/pytorch-lightning@2.2.5#egg=lightning\n",
    "editable.txt": "-e git+ssh://git@github.com/Lightning-AI/lightning.git@v2.2.5\n",
    "Dockerfile": "FROM python:3.11\nRUN pip install lightning==2.2.5\n",
    "gpu.Dockerfile": "FROM a\n# it\nRUN ls && \\\n  # pins\n  python -m pip install -q numpy 'lightning==2.2.5'\n",
    "Dockerfile.train": "FROM a\nARG PL=2.2.5\nRUN uv pip install lightning==${PL}\n",
    "pixi.toml": '[dependencies]\npython = "3.11.*"\n[feature.train.pypi-dependencies]\nlightning = "==2.2.5"\n',
    "pixi/pyproject.toml": '[tool.pixi.target.linux-64.dependencies]\nlightning = {version = "2.2.5"}\n',
    "pixi.lock": "version: 6\npackages:\n- conda: https://x.org/noarch/numpy-2.0-py_0.conda\n"
    "- pypi: https://x.org/a/lightning-2.2.5-py3-none-any.whl\n",
    "conda-lock.yml": "package:\n- name: lightning\n  version: 2.2.5\n  manager: conda\n  platform: linux-64\n",
    "conda-linux-64.lock": "# platform: linux-64\n@EXPLICIT\nhttps://x.org/noarch/lightning-2.2.5-pyhd8ed1ab_0.conda#00\n",
    "train.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": ["import os\n", "!pip install -q 'lightning==2.2.5' torch"]}]},
        indent=1,
    ),
    "magic.ipynb": '{"cells": [{"cell_type": "code", "source": "%pip install lightning==2.2.5"}]}',
    ".github/workflows/ci.yml": "on: push\njobs:\n  a:\n    steps:\n    - uses: actions/checkout@v4\n    - run: |\n"
    "        python -m pip install --upgrade pip\n        pip install lightning==2.2.5 pytest\n",
    "action.yml": 'runs:\n  using: composite\n  steps:\n  - run: uv pip install "lightning==2.2.5"\n',
    "options.Dockerfile": "FROM a\nRUN pip --no-cache-dir install --user \\\n    lightning==2.2.5\n",
    "heredoc.Dockerfile": "FROM a\nRUN <<EOF\nset -e\npip install lightning==2.2.5\nEOF\nCMD python\n",
    "default.Dockerfile": "FROM a\nRUN pip install lightning==${PL:-2.2.5}\n",
    "Containerfile": "FROM a\nRUN conda install -y -c conda-forge lightning=2.2.5 python\n",
}


@pytest.mark.parametrize("name", PROJECTS)
def test_requirements_of_a_project_are_found(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PROJECTS[name])
    for arguments in ([str(path)], ["-r", str(path)]):
        status, (one,) = audit(capsys, *arguments)
        assert (status, one["distribution"], one["version"]) == (1, "lightning", "2.2.5")
        assert "lightning" in PROJECTS[name].splitlines()[one["line"] - 1]


ENTRIES = {
    "uv.lock": """\
        version = 1
        [[package]]
        name = "lightning"
        version = "2.2.5"
        dependencies = [
            { name = "pytorch-lightning" },
        ]
        [[package]]
        name = "lightning"
        version = "2.6.6"
        [[package]]
        name = "pytorch-lightning"
        version = "2.3.3"
    """,
    "poetry.lock": """\
        [[package]]
        name = "lightning"
        version = "2.2.5"
        [package.dependencies]
        pytorch-lightning = "*"
        [[package]]
        name = "lightning"
        version = "2.6.6"
        [[package]]
        name = "pytorch-lightning"
        version = "2.3.3"
    """,
    "pylock.toml": """\
        [[packages]]
        name = "lightning"
        version = "2.2.5"
        [[packages.wheels]]
        name = "lightning-2.2.5-py3-none-any.whl"
        [[packages]]
        name = "lightning"
        version = "2.6.6"
        [[packages]]
        name = "pytorch-lightning"
        version = "2.3.3"
    """,
    "Pipfile.lock": """\
        {"_meta": {},
        "default": {
            "lightning": {
                "version": "==2.2.5"}},
        "develop": {
            "pytorch-lightning": {
                "version": "==2.3.3"},
            "lightning": {
                "version": "==2.6.6"}}}
    """,
    "conda-lock.yml": """\
        package:
        - name: lightning
          version: 2.2.5
          dependencies: {pytorch-lightning: '*'}
        - name: lightning
          version: 2.6.6
        - name: pytorch-lightning
          version: 2.3.3
    """,
    "pixi.lock": """\
        packages:
        - conda: https://x.org/noarch/lightning-2.2.5-py_0.conda
          depends: [pytorch-lightning]
        - conda: https://x.org/noarch/lightning-2.6.6-py_0.conda
        - pypi: https://x.org/pytorch_lightning-2.3.3-py3-none-any.whl
    """,
    "environment.yml": """\
        name: lightning
        dependencies:
        - pip
        - pip:
          # lightning==2.2.4
          - lightning==2.2.5
          - lightning==2.6.6
          - pytorch-lightning==2.3.3
    """,
    "requirements.txt": """\
        # pytorch-lightning
        lightning==2.2.5
        lightning==2.6.6
        pytorch-lightning==2.3.3
    """,
    "pyproject.toml": """\
        [project]
        name = "pytorch-lightning-lightning"
        dependencies = ["pytorch-lightning==2.3.3"]
        optional-dependencies.a = ["lightning==2.2.5"]
        optional-dependencies.b = [
            "lightning==2.6.6"]
    """,
    ".github/workflows/ci.yml": """\
        name: pytorch-lightning and lightning
        jobs:
          a:
            steps:
            - run: |
                echo lightning
                pip install lightning==2.2.5
            - run: pip install lightning==2.6.6
            - run: pip install \\
                  pytorch-lightning==2.3.3
    """,
}
"""The same three requirements."""


@pytest.mark.parametrize("name", ENTRIES)
def test_reported_line_names_the_release(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(ENTRIES[name]))
    lines = path.read_text().splitlines()
    found = {(one["distribution"], one["version"]): one["line"] for one in audit(capsys, str(path))[1]}
    assert sorted(found) == [("lightning", "2.2.5"), ("lightning", "2.6.6"), ("pytorch-lightning", "2.3.3")]
    for (distribution, version), line in found.items():
        here = "".join(lines[line - 1 : line + 1])
        assert re.search(rf"(?<!-){distribution.replace('-', '[-_]')}\b", lines[line - 1]) and version in here, lines[
            line - 1
        ]


DOCKERFILES = {
    "beside": "COPY requirements.txt .\nRUN pip install -r requirements.txt",
    "absolute": "COPY requirements.txt /tmp/\nRUN pip install -r /tmp/requirements.txt",
    "into a directory": "COPY requirements.txt /tmp\nRUN pip install -r /tmp/requirements.txt",
    "another name": "COPY requirements.txt /opt/req.txt\nRUN pip install --requirement=/opt/req.txt",
    "of a directory": "WORKDIR /app\nCOPY deps deps/\nRUN pip install -r deps/requirements.txt",
    "all": "WORKDIR /app\nWORKDIR src\nCOPY . .\nRUN pip install -r /app/src/requirements.txt",
    "cd": "COPY . /app\nRUN cd /app && pip install -r requirements.txt",
    "stars": "COPY req*.txt /x/\nRUN pip install -r /x/requirements.txt",
    "a list": 'COPY ["requirements.txt", "/x/"]\nRUN pip install -r /x/requirements.txt',
    "add": "ADD --chown=1:1 requirements.txt /x/\nRUN pip install -r /x/requirements.txt",
    "variables": "ARG D=/x\nENV R=requirements.txt\nCOPY $R ${D}/\nRUN pip install -r $D/$R",
    "stage": "COPY requirements.txt /x/\nFROM b\nCOPY --from=0 /x /y\nRUN pip install -r /y/requirements.txt",
    "named stage": "FROM b AS c\nCOPY . /x/\nFROM c\nRUN pip install -r /x/requirements.txt",
    "mount": "RUN --mount=type=bind,source=requirements.txt,target=/r.txt pip install -r /r.txt",
    "project": "WORKDIR /app\nCOPY pyproject.toml .\nRUN pip install .",
    "lock": "WORKDIR /app\nCOPY uv.lock pyproject.toml ./\nRUN uv sync --frozen",
    "conda": "COPY environment.yml /tmp/\nRUN conda env update -n base -f /tmp/environment.yml",
    "includes": "COPY deps /x\nRUN pip install -r /x/more.txt",
}


@pytest.mark.parametrize("case", DOCKERFILES)
def test_dockerfile_includes_copied_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, case: str) -> None:
    for name in ("requirements.txt", "deps/requirements.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("lightning==2.2.5\n")
    (tmp_path / "deps" / "more.txt").write_text("-r requirements.txt\n")
    for name in ("pyproject.toml", "uv.lock", "environment.yml"):
        (tmp_path / name).write_text(PROJECTS[name])
    (tmp_path / "Dockerfile").write_text(f"FROM python:3.11\n{DOCKERFILES[case]}\n")
    _, (one,) = audit(capsys, str(tmp_path / "Dockerfile"))
    assert (one["version"], Path(one["file"]).parent in (tmp_path, tmp_path / "deps")) == ("2.2.5", True)
    assert "lightning" in Path(one["file"]).read_text().splitlines()[one["line"] - 1]


@pytest.mark.parametrize(
    "text",
    [
        "RUN pip install -r {out}/requirements.txt",
        "RUN pip install -r /etc/requirements.txt -c {out}/requirements.txt",
        "COPY . /app\nRUN pip install -r {out}/requirements.txt",
        "COPY ../out /app\nRUN pip install -r /app/requirements.txt",
        "COPY {out} /app\nRUN pip install -r /app/requirements.txt",
        "COPY link.txt link /app/\nRUN pip install -r /app/link.txt && pip install -r /app/link/requirements.txt",
        "COPY . /app\nRUN pip install -r /app/link.txt && pip install -r /app/link/requirements.txt",
        "COPY . /app\nRUN pip install -r /app/../out/requirements.txt",
        "COPY . /app\nRUN cd /app/link && pip install -r requirements.txt",
        "COPY . /app\nRUN pip install -r /app/includes.txt",
        "WORKDIR {out}\nRUN pip install -r requirements.txt",
        "WORKDIR {out}\nRUN pip install . && uv sync && conda env create -f environment.yml",
        "COPY --from=other {out} /app\nRUN pip install -r /app/requirements.txt",
        "RUN --mount=type=bind,source=../out,target=/app pip install -r /app/requirements.txt",
        "ENV A={out}\nRUN pip install -r $A/requirements.txt",
    ],
)
def test_dockerfile_never_reads_outside_its_build_context(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    out, context = tmp_path / "out", tmp_path / "context"
    for directory in (out, context):
        directory.mkdir()
    for name in ("pyproject.toml", "uv.lock", "environment.yml"):
        (out / name).write_text(PROJECTS[name])
    (out / "requirements.txt").write_text("lightning==2.2.5\n")
    (context / "link.txt").symlink_to(out / "requirements.txt")
    (context / "link").symlink_to(out)
    (context / "includes.txt").write_text(f"-r {out}/requirements.txt\n-r ../out/requirements.txt\n")
    (context / "Dockerfile").write_text(f"FROM a\n{text.format(out=out)}\n")
    assert cli.main(["audit", str(context / "Dockerfile")]) == 2
    assert "was not read, so it is unknown if Lightning is required" in capsys.readouterr().err
    assert cli.main(["audit", str(context), "--fail-on", "never"]) == 0
    text = capsys.readouterr().out
    assert "was not read" in text
    assert cli.main(["audit", str(context)]) == (3 if "not read: " in text else 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("environment.yml", "dependencies:\n  - pip\n  - pip:\n    - -r more.txt\n"),
        (
            "pyproject.toml",
            '[project]\ndynamic = ["dependencies"]\n[tool.setuptools.dynamic]\ndependencies = {file = ["more.txt"]}\n',
        ),
        ("requirements.txt", "--extra-index-url https://a.org\n-c more.txt\n"),
        ("action.yml", "runs:\n  steps:\n  - run: pip install --constraint more.txt torch\n"),
        ("train.ipynb", '{"cells": [{"cell_type": "code", "source": "!pip install -rmore.txt"}]}'),
    ],
)
def test_file_included_by_any_format_is_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "more.txt").write_text("torch\nlightning==2.2.5\n", encoding="utf-16")
    _, (one,) = audit(capsys, str(tmp_path / name))
    assert (one["version"], one["file"], one["line"]) == ("2.2.5", str(tmp_path / "more.txt"), 2)


def test_environment_name_is_not_read_as_a_package(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text("FROM a\nRUN conda create -n lightning -c lightning python && pip install -t lightning numpy\n")
    assert cli.main(["audit", str(path)]) == 2
    assert "does not install Lightning by name" in capsys.readouterr().err


def test_workflow_steps_run_in_the_checkout(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "requirements.txt").write_text("lightning==2.2.5\n")
    path = tmp_path / ".github" / "workflows" / "ci.yml"
    monkeypatch.chdir(tmp_path)
    for run in ("run: pip install -r sub/requirements.txt", "run: cd sub && pip install -r requirements.txt",
                "{run: pip install -r requirements.txt, working-directory: sub}"):  # fmt: skip
        path.write_text(f"jobs:\n  a:\n    steps:\n    - {run}\n")
        _, (one,) = audit(capsys, ".github/workflows/ci.yml")
        assert (one["version"], Path(one["file"]).name) == ("2.2.5", "requirements.txt")
    path.write_text("jobs:\n  a:\n    steps:\n    - run: pip install -r /etc/requirements.txt\n")
    assert cli.main(["audit", str(path)]) == 2
    assert "is not in the project" in capsys.readouterr().err


def test_context_option_sets_the_build_context(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "docker").mkdir()
    (tmp_path / "requirements.in").write_text("lightning==2.2.5\n")
    path = tmp_path / "docker" / "Dockerfile"
    path.write_text("FROM a\nCOPY requirements.in /x/\nRUN pip install -r /x/requirements.in\n")
    assert cli.main(["audit", str(path)]) == 2
    capsys.readouterr()
    assert audit(capsys, str(path), "--context", str(tmp_path))[1][0]["version"] == "2.2.5"
    assert {one["version"] for one in audit(capsys, str(tmp_path))[1]} == {"2.2.5"}


def test_copied_requirements_file_of_a_dockerfile_is_audited(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("lightning==2.2.5\n")
    (tmp_path / "Dockerfile").write_text("FROM a\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n")
    _, (one,) = audit(capsys, str(tmp_path / "Dockerfile"))
    assert (one["version"], one["file"]) == ("2.2.5", str(tmp_path / "requirements.txt"))
    (tmp_path / "requirements.txt").unlink()
    assert cli.main(["audit", str(tmp_path / "Dockerfile")]) == 2


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        ("lightning==2.2", "2.2.0"),
        ("lightning~=2.2.0", "2.2.5"),
        ("lightning~=2.2", "2.6.6"),
        ("https://host/a/pytorch_lightning-2.2.5-py3-none-any.whl", "2.2.5"),
        ("git+https://github.com/Lightning-AI/pytorch-lightning@2.2.5", "2.2.5"),
        ("git+https://github.com/Lightning-AI/pytorch-lightning@master", None),
    ],
)
def test_specifiers_select_the_releases_of_pip(capsys: pytest.CaptureFixture[str], spec: str, version: Any) -> None:
    status, (one,) = audit(capsys, spec)
    assert (one["version"], one["known"], status == 3) == (version, version is not None, version is None)
    assert bool(one["bugs"]) is bool(version)


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        ("pytorch-lightning~=1.7.0", "1.7.7"),
        ("pytorch-lightning<2", "1.9.5"),
        ("lightning<2", "1.9.5"),
        ("lightning==1.9.5", "1.9.5"),
        ("pytorch-lightning>=1.5,<1.6", "1.5.10.post0"),
        ("pytorch-lightning==1.6.*", "1.6.5.post0"),
        ("pytorch-lightning<=1.8.3", "1.8.3"),
        ("lightning>=1.9,!=2.6.6", "2.6.5"),
        ("lightning>=2.6.1,<2.6.4", "2.6.1"),
        ("pytorch-lightning<1.5", None),
        ("lightning<1.8", None),
    ],
)
def test_resolver_picks_among_all_releases(capsys: pytest.CaptureFixture[str], spec: str, version: Any) -> None:
    status, (one,) = audit(capsys, spec)
    assert (one["version"], one["known"], status == 3) == (version, version is not None, version is None)
    assert bool(one["bugs"]) is bool(version)
    if version and version < "1.8":
        assert "Releases 1.5 to 1.7" in one["headline"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("lightning=2.*", "2.6.6"),
        ("lightning=2.2.*", "2.2.5"),
        ("lightning=2.2", "2.2.5"),
        ("lightning 2.2.*", "2.2.5"),
        ("lightning>=2.1,<2.3", "2.2.5"),
        ("conda-forge::lightning=2.2.5=pyhd8ed1ab_0", "2.2.5"),
        ("lightning[version='>=2.1,<2.3']", "2.2.5"),
        ("lightning 1.9.*|2.2.*", "2.2.5"),
        ("lightning~=2.2.0", "2.2.5"),
        ("lightning >=2.0.*,<2.1a0", "2.0.9.post0"),
        ("pytorch-lightning=1.7", "1.7.7"),
    ],
)
def test_constraint_of_conda_selects_the_release(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, version: str
) -> None:
    (tmp_path / "environment.yml").write_text(f"dependencies:\n  - {json.dumps(text)}\n")
    _, (one,) = audit(capsys, str(tmp_path / "environment.yml"))
    assert one["version"] == version


@pytest.mark.parametrize(
    ("text", "gone", "there"),
    [
        (
            "torch==2.2.0+cu118",
            {"own-checkpoint-load", "trusted-checkpoint-load", "tf32-advice"},
            {"rich-progress-bar"},
        ),
        ("torch>=2.1,<2.6", {"own-checkpoint-load"}, set()),
        ("torch>=2.1", set(), {"own-checkpoint-load"}),
        ("torch==2.6.0", {"tf32-advice"}, {"own-checkpoint-load"}),
        ("torch==2.2.0\ntorch==2.7.0", set(), {"own-checkpoint-load"}),
        ("torch==2.2.0 ; python_version < '3'", set(), {"own-checkpoint-load"}),
        ("setuptools<81", {"import-without-pkg-resources"}, set()),
        ("rich==13.7", {"rich-progress-bar"}, set()),
        ("numpy", set(), {"rich-progress-bar"}),
    ],
)
def test_bugs_that_the_same_file_excludes_are_not_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, gone: set[str], there: set[str]
) -> None:
    (tmp_path / "requirements.txt").write_text(f"{text}\nlightning==2.2.5\n")
    _, (one,) = audit(capsys, str(tmp_path / "requirements.txt"))
    assert gone == set(one["excluded"]) & (gone | there) and not gone & names(one) and there <= names(one)
    assert any("bugs that the other requirements of the file exclude" in note for note in one["notes"]) is bool(
        one["excluded"]
    )


@pytest.mark.parametrize("patch", [patch for patch in all_patches() if patch.only_with], ids=lambda patch: patch.name)
def test_bug_needs_the_packages_of_its_record(patch: Any) -> None:
    for text in patch.only_with:
        version = text.partition(">=")[2]
        assert version.replace(".0", "") in f"{patch.title} {patch.impact.summary}", text


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("environment.yml", "dependencies:\n  - python=3.9\n  - lightning\n", "2.6.0"),
        ("environment.yml", "dependencies:\n  - python=3.8.10\n  - lightning\n", "2.3.3"),
        ("environment.yml", "dependencies:\n  - python=3.8.10\n  - pytorch-lightning\n", "2.4.0"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.8"\ndependencies = ["lightning"]\n', "2.6.6"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.8,<3.9"\ndependencies = ["lightning>=2"]\n', "2.3.3"),
        ("Dockerfile", "FROM python:3.9-slim\nRUN pip install lightning\n", "2.6.0"),
    ],
)
def test_range_is_limited_by_the_python_of_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str, version: str
) -> None:
    (tmp_path / name).write_text(text)
    _, (one,) = audit(capsys, str(tmp_path / name))
    assert one["version"] == version
    assert any("and allows python" in note for note in one["notes"]) is (version != "2.6.6")


@pytest.mark.parametrize(
    ("files", "is_seen"),
    [
        ({}, False),
        ({"train.py": "import torch\nimport lightning_patches\n"}, True),
        ({"src/train.py": "  from lightning_patches import activate\n"}, True),
        ({"train.py": "# import lightning_patches\n'lightning_patches'\n"}, False),
        ({"venv/pyvenv.cfg": "", "venv/a.py": "import lightning_patches\n"}, False),
        ({"requirements.txt": "lightning==2.2.5\nlightning-patches\n"}, True),
        ({"requirements.txt": "lightning==2.2.5\nlightning-patches @ git+https://a.org/lightning-patches\n"}, True),
        ({"Dockerfile": "FROM a\nRUN pip install lightning==2.2.5\nENV LIGHTNING_PATCHES=1\n"}, True),
        ({"Dockerfile": "FROM a\nRUN pip install lightning==2.2.5\nENV LIGHTNING_PATCHES=off\n"}, False),
        ({"Dockerfile": 'FROM a\nRUN pip install lightning==2.2.5\nCMD ["lightning-patches", "run", "a.py"]\n'}, True),
    ],
)
def test_bugs_are_fixed_if_the_project_uses_the_patches(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, files: dict[str, str], is_seen: bool
) -> None:
    for name, text in {"requirements.txt": "lightning==2.2.5\n", **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    path = tmp_path / ("Dockerfile" if "Dockerfile" in files else "requirements.txt")
    for what in (path, tmp_path):
        for one in audit(capsys, str(what))[1]:
            assert one["has_patches"] is is_seen
            assert ("would be fixed by the patches" in one["headline"]) is not is_seen
            assert ("import lightning_patches" in one["do"]) is not is_seen
        assert cli.main(["audit", str(what), "--format", "github", "--all"]) == 1
        assert ("Would be fixed by the patches" in capsys.readouterr().out) is not is_seen


def test_directory_is_searched(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("uv.lock", "dev/pyproject.toml", "environment.yml", "train.ipynb", ".github/workflows/ci.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PROJECTS[name])
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["lightning>=2.0"]\n')
    for name in (".venv/requirements.txt", "a/node_modules/requirements.txt", "Dockerfile", "b/requirements.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("torch\n" if name[0] == "b" else "lightning==2.0.0\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    _, audited = audit(capsys, str(tmp_path))
    found = {Path(one["file"]).relative_to(tmp_path).as_posix() for one in audited}
    assert found == {"uv.lock", "dev/pyproject.toml", "environment.yml", "train.ipynb", ".github/workflows/ci.yml"}
    assert {one["version"] for one in audited} == {"2.2.5"}, "what is locked is what is installed"
    (tmp_path / "empty").mkdir()
    assert cli.main(["audit", str(tmp_path / "empty")]) == 2
    assert "has no file that `audit` reads" in capsys.readouterr().err


def test_unreadable_file_of_a_directory_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text("no toml")
    (tmp_path / "requirements.txt").write_text("torch\n")
    assert cli.main(["audit", str(tmp_path)]) == 2
    done = capsys.readouterr().out
    assert done.startswith("Some files may require Lightning") and "uv.lock cannot be understood" in done
    assert cli.main(["audit", str(tmp_path), "--format", "sarif"]) == 2
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    (tmp_path / "requirements.txt").write_text("lightning==2.2.5\n")
    status = cli.main(["audit", str(tmp_path), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert status == 1 and len(document["audited"]) == 1 and "uv.lock cannot" in document["unclear"][0]


@pytest.mark.parametrize("form", ["text", "github", "markdown", "sarif"])
def test_suggested_ignore_option_silences_all_findings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("lightning==2.2.5\n")
    assert cli.main(["audit", str(path), "--format", form]) == 1
    done = capsys.readouterr()
    accepted = re.findall(r"--ignore [\w-]+", (done.out if form == "text" else done.err).splitlines()[-1])
    assert len(accepted) == 1
    assert cli.main(["audit", str(path), "--format", form, *" ".join(accepted).split()]) == 0
    assert "--ignore" not in "".join(capsys.readouterr())


def test_pre_commit_hook_prints_only_errors_and_warnings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("lightning==2.2.5\n")
    _, (one,) = audit(capsys, str(path))
    open_ones = {bug["name"] for bug in one["bugs"] if not bug["covered"]}
    assert 0 < len(open_ones) < len(one["bugs"]) / 2
    cli.main(["audit", str(path), "--format", "github"])
    assert set(re.findall(r"title=([\w-]+)::", capsys.readouterr().out)) == open_ones
    cli.main(["audit", str(path), "--format", "sarif"])
    assert {r["ruleId"] for r in json.loads(capsys.readouterr().out)["runs"][0]["results"]} == open_ones
    cli.main(["audit", str(path)])
    rows = {
        line.split()[0]
        for line in capsys.readouterr().out.splitlines()
        if re.match(r"[a-z-]+ +\w+ +(NO|opt-in) ", line)
    }
    assert rows == open_ones


@pytest.mark.parametrize(
    ("spec", "verdict", "do"),
    [
        ("lightning==2.2.5", "lightning 2.2.5 has ", "move to lightning==2.3.3 or newer, for lightning-app"),
        ("lightning==2.6.6", "lightning 2.6.6 has ", "add `import lightning_patches` above every import of Lightning"),
        ("lightning==2.6.2", "lightning 2.6.2 is a compromised release", "do not import it: uninstall it"),
        (
            "lightning==2.7.0",
            "lightning 2.7.0 is not a known release",
            "check the version number, or use a known",
        ),
        ("lightning>=3", "lightning>=3: the release is unknown", "pin a release"),
    ],
)
def test_output_has_the_verdict_first_and_then_the_advice(
    capsys: pytest.CaptureFixture[str], spec: str, verdict: str, do: str
) -> None:
    cli.main(["audit", spec, "--all"])
    first, second, *others = capsys.readouterr().out.splitlines()
    assert first.startswith(verdict) and second.startswith(f"Do: {do}")
    start = next((number for number, line in enumerate(others) if line.startswith("BUG ")), len(others))
    table = others[start : others.index("", start)] if start < len(others) else []
    assert all(len(line) <= 100 for line in table)
    assert bool(table) is (" has " in verdict or "compromised" in verdict)


@pytest.mark.parametrize(
    ("text", "version"),
    [("^2.2", "2.6.6"), ("~2.2.1", "2.2.5"), ("2.2.*", "2.2.5"), (">=2.1,<2.3", "2.2.5"), ("*", "2.6.6")],
)
def test_constraint_of_poetry_selects_the_release(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, version: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.poetry.dependencies]\npytorch-lightning = "{text}"\n')
    _, (one,) = audit(capsys, str(tmp_path / "pyproject.toml"))
    assert one["version"] == version


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "train.ipynb",
            '{"cells": [{"cell_type": "code", "source": "import lightning as L"}]}',
            "and does not install it",
        ),
        ("docker-compose.yml", "services: {}\n", "it has no dependencies"),
        ("requirements.txt", "-r https://a.org/requirements.txt\n", "is a URL, and was not downloaded"),
        ("package.json", "{}", "is not supported. `audit` reads"),
        ("environment.yml", "- lightning=2.2.5\n", "it has no dependencies"),
        ("environment.yml", "a: [\n", "cannot be understood"),
        ("uv.lock", "lightning 2.2.5", "cannot be understood"),
        ("Pipfile.lock", "[]", "cannot be understood"),
        ("requirements.txt", "lightning 2.2.5\n", "line 1: a requirement of Lightning cannot be understood"),
        ("setup.sh", "set -e\npip install lightning==2.2.5\n", "line 1 cannot be understood"),
        (
            "Dockerfile",
            "FROM pytorchlightning/pytorch_lightning\nRUN pip install numpy\n",
            "does not install Lightning",
        ),
        ("Dockerfile", "FROM a\nRUN pip install lightning==$UNKNOWN\n", "cannot be understood"),
        ("pyproject.toml", '[project]\nname = "x"\ndynamic = ["dependencies"]\n', "leaves its dependencies"),
    ],
)
def test_unsupported_file_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    assert cli.main(["audit", "-r", str(tmp_path / name)]) == 2
    assert words in capsys.readouterr().err


def test_missing_parser_library_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for missing, name in (("tomllib", "uv.lock"), ("yaml", "environment.yml")):
        (tmp_path / name).write_text(PROJECTS[name])
        monkeypatch.setitem(sys.modules, missing, None)
        monkeypatch.setitem(sys.modules, "tomli", None)
        assert cli.main(["audit", str(tmp_path / name)]) == 2
        assert "pip install" in capsys.readouterr().err


def test_every_format_lists_the_bugs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch\nlightning==2.2.5\n")
    assert cli.main(["audit", str(path), "--format", "github"]) == 1
    assert "::notice" not in capsys.readouterr().out
    assert cli.main(["audit", str(path), "--format", "github", "--all"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"::error file={path},line=2,title=lightning-app::") for line in lines)
    assert any(line.startswith("::notice") and f"title={DEVICE}::" in line for line in lines)
    assert cli.main(["audit", str(path), "--format", "markdown", "--all"]) == 1
    assert f"| `{DEVICE}` | crash | yes | 2.4.0 |" in capsys.readouterr().out
    assert cli.main(["audit", str(path), "--format", "sarif", "--all"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert rules == {result["ruleId"] for result in run["results"]} >= {DEVICE, "lightning-app"}
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": str(path)}, "region": {"startLine": 2}}
    assert cli.main(["audit", "lightning==2.7.0", "--format", "github"]) == 3
    assert "::warning title=unknown release::" in capsys.readouterr().out


@pytest.mark.parametrize("in_file", [False, True], ids=["command line", "file"])
def test_sarif_marks_unknown_releases(capsys: pytest.CaptureFixture[str], tmp_path: Path, in_file: bool) -> None:
    """A file without results would mean that there is no bug."""
    path = tmp_path / "requirements.txt"
    path.write_text("torch\nlightning==2.7.0\n")
    assert cli.main(["audit", str(path) if in_file else "lightning==2.7.0", "--format", "sarif"]) == 3
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (invocation,) = run["invocations"]
    error, note = invocation["toolExecutionNotifications"]
    assert run["results"] == [] and invocation["executionSuccessful"] is False
    assert (error["level"], note["level"]) == ("error", "note")
    assert "lightning 2.7.0 is not a known release: its bugs are unknown" in error["message"]["text"]
    assert note["message"]["text"].startswith("the known releases are 1.8.0 to ")
    assert [len(said.get("locations", [])) for said in (error, note)] == [int(in_file)] * 2
    if in_file:
        assert error["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}
    assert cli.main(["audit", "lightning==2.2.5", "--format", "sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (invocation,) = run["invocations"]
    assert run["results"] and invocation["executionSuccessful"] is True
    assert {said["level"] for said in invocation["toolExecutionNotifications"]} <= {"note"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--requirement", "torch==2.6"], "not a requirement of lightning"),
        (["--requirement", "lightning==2.2.5; python_version < '3'"], "its marker is for another Python"),
        (["--requirement", "lightning=>2.2"], "not a requirement such as"),
        (["-r", "no_such_file.txt"], "cannot be read"),
        (["--ignore", "nothing-of-that-name"], "there is no bug"),
    ],
)
def test_unauditable_inputs_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert cli.main(["audit", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_environment_is_audited() -> None:
    """Installed releases are recognized by their code, without an import."""
    variables = environment_of(Variant("lightning", "2.3.3"))
    program = (
        "import sys; from lightning_patches.cli import main; status = main(['audit', '--all']); "
        "print(status, sorted({'torch', 'lightning'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**variables, "_LIGHTNING_PATCHES_IMPORT_ONLY": "1"}, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0].startswith("lightning 2.3.3 has "), done
    assert any(line.startswith(DEVICE) and " yes " in line for line in lines)
    assert lines[-1] == "0 []"


def installed(variant: Variant, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``audit`` in an environment with a release, and with ``path`` before it."""
    variables = environment_of(variant)
    variables["PYTHONPATH"] = os.pathsep.join([str(path), variables["PYTHONPATH"]])
    command = [sys.executable, "-m", "lightning_patches", "audit", *arguments]
    variables["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
    return subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_environment_has_no_bug_that_its_packages_exclude(tmp_path: Path) -> None:
    for name, version in (("torch", "2.2.0+cu118"), ("rich", "14.1")):
        metadata = tmp_path / f"{name}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    done = installed(Variant("lightning", "2.2.5"), tmp_path, "--json")
    (one,) = json.loads(done.stdout)["audited"]
    assert {"own-checkpoint-load", "tf32-advice"} <= set(one["excluded"]) and "rich-progress-bar" in names(one)
    assert ("profiler-nested-actions" in one["excluded"]) is (sys.version_info < (3, 12))
    assert not names(one) & set(one["excluded"])
    assert any("bugs that the other packages of this environment exclude" in note for note in one["notes"])


def test_metadata_that_are_not_utf_8_exclude_no_bug(tmp_path: Path) -> None:
    for name in ("torch", "rich", "setuptools"):
        metadata = tmp_path / f"{name}-1.0.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_bytes(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nAuthor: ".encode() + b"\xff\n")
    done = installed(Variant("lightning", "2.2.5"), tmp_path, "--json")
    assert "This is a bug" not in done.stderr
    (one,) = json.loads(done.stdout)["audited"]
    assert {"own-checkpoint-load", "rich-progress-bar"} <= names(one)


@pytest.mark.skipif(os.name == "nt", reason="Windows does not delete a directory that is in use")
def test_deleted_working_directory_is_named(tmp_path: Path) -> None:
    program = (
        "import os, sys; from lightning_patches import cli; os.rmdir(os.getcwd()); sys.exit(cli.main(sys.argv[1:]))"
    )
    for what in (".", "requirements.txt", "../requirements.txt"):
        (tmp_path / "gone").mkdir()
        done = subprocess.run(
            [sys.executable, "-c", program, "audit", what],
            cwd=tmp_path / "gone", env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2 and "This is a bug" not in done.stderr, done
        assert "the working directory no longer exists" in done.stderr


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("2.2.5", "lightning==2.2.5?"),
        ("lightnig==2.2.5", "Did you mean lightning==2.2.5?"),
        ("requirments.txt", "there is no file 'requirments.txt'"),
        ("nope.log", "there is no file 'nope.log', and it is not a requirement of lightning"),
        ("nope", "there is no file 'nope', and"),
        ("lightning.log", "there is no file 'lightning.log', and it is not a requirement of lightning,"),
        ("my log.txt", "There is no file 'my log.txt', and it is not a requirement such as"),
        ("conf/nope.log", "conf/nope.log cannot be read: No such file"),
        ("torch=2.2.5", "'torch=2.2.5' is not a requirement of lightning"),
    ],
)
def test_misspelled_input_gets_a_suggestion(capsys: pytest.CaptureFixture[str], what: str, words: str) -> None:
    assert cli.main(["audit", what]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "release"),
    [
        ("lightning=2.2.4", "lightning 2.2.4"),
        ("lightning=2.2.*", "lightning 2.2.5"),
        ("lightning=2.*", "lightning 2.6.6"),
        ("lightning=2.2", "lightning 2.2.5"),
        ("conda-forge::pytorch-lightning=2.2.4=py_0", "pytorch-lightning 2.2.4"),
        ("lightning 2.2.4", "lightning 2.2.4"),
        ("lightning^2.1", "lightning 2.6.6"),
    ],
)
def test_requirements_of_conda_and_poetry_are_parsed(
    capsys: pytest.CaptureFixture[str], spec: str, release: str
) -> None:
    _, (one,) = audit(capsys, spec)
    assert f"{one['distribution']} {one['version']}" == release


def test_directory_whose_setup_names_lightning_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("requirements.txt").write_text("torch\n")
    Path("setup.py").write_text("from setuptools import setup\nsetup(install_requires=['lightning==2.2.5'])\n")
    cli.main(["audit", "."])
    said = capsys.readouterr().out
    assert "There is no Lightning" not in said and "setup.py, line 2, names lightning, and was not read." in said


def test_binary_file_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(bytes(range(256)))
    assert cli.main(["audit", str(tmp_path / "requirements.txt")]) == 2
    assert f"{tmp_path / 'requirements.txt'} cannot be read: it is not text\n" in capsys.readouterr().err
    assert cli.main(["audit", str(tmp_path)]) == 2
    assert f"unclear: {tmp_path / 'requirements.txt'} cannot be read: it is not text." in capsys.readouterr().out


def test_release_of_1x_has_its_known_bugs(capsys: pytest.CaptureFixture[str]) -> None:
    _, (one,) = audit(capsys, "--requirement", "pytorch-lightning==1.7.7")
    patches = ("import-without-pkg-resources", "own-checkpoint-load", "scheduler-choices", "scheduler-types")
    opens = ("torchmetrics-compare-version", "trusted-checkpoint-load", "metadata-of-1x")
    assert names(one) == {*patches, *opens}
    assert "Releases 1.5 to 1.7" in one["headline"] and not one["notes"]


def test_release_since_1_8_has_bugs_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    status, (one,) = audit(capsys, "--requirement", "lightning==1.9.5")
    assert status == 1 and {"fit-resets-should-stop", "app-beside-lightning-cloud"} <= names(one)
    assert "For 1.5" not in one["headline"]


def test_release_before_1_8_reports_only_known_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["audit", "--requirement", "pytorch-lightning==1.7.7"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Releases 1.5 to 1.7 were checked only for bugs that keep them from running" in said
    assert said.lower().count("releases 1.5 to 1.7") == 1, "and says it once"


def test_patch_for_1x_lists_its_releases(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "--json", "scheduler-types"]) == 0
    (record,) = json.loads(capsys.readouterr().out)["patches"]
    assert record["affected"] == [">=1.5.0,<1.8.0", ">=1.8.0,<1.8.4"]
    assert (record["affected_releases"][0], record["affected_releases"][-1]) == ("1.5.0", "1.8.3.post2")
