"""``lightning-patches audit`` of files with release numbers, and of installed packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.engine import gate
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.known.unpatched import UNPATCHED
from lightning_patches.patch import GROUPS
from lightning_patches.patches import all_patches
from tests.support.variants import ROOT, Variant, environment_of
from tests.unit.commands import Audit

DEVICE = "logged-metrics-device"


def names(audited: dict[str, Any]) -> set[str]:
    return {bug["name"] for bug in audited["bugs"]}


@pytest.mark.parametrize("bug", UNPATCHED, ids=lambda bug: bug.name)
def test_record_of_unpatched_bug_is_complete(bug: Any) -> None:
    assert bug.name not in {patch.name for patch in all_patches()}
    assert bug.group in GROUPS
    assert bug.title and bug.impact.summary and bug.why_not
    assert bug.do or not in_ranges(bug.move_to, bug.affected)
    assert bug.fixed_in is None or not in_ranges(bug.fixed_in, bug.affected)


@pytest.mark.parametrize("patch", [patch for patch in all_patches() if patch.only_with], ids=lambda patch: patch.name)
def test_bug_needs_the_packages_of_its_record(patch: Any) -> None:
    for text in patch.only_with:
        version = text.partition(">=")[2]
        assert version.replace(".0", "") in f"{patch.title} {patch.impact.summary}", text


def test_release_has_its_known_bugs(audit: Audit) -> None:
    (one,) = audit.audited("--requirement", "lightning==2.2.5")
    fixing = [patch for patch in all_patches() if not patch.warns]
    expected = {patch.name for patch in fixing if in_ranges("2.2.5", patch.affected_known)}
    on_machines = {bug.name for bug in UNPATCHED if bug.machine and in_ranges("2.2.5", bug.affected)}
    assert names(one) == expected | on_machines | {"lightning-app"}
    assert audit.status == 1  # a bug without a patch
    bugs = {bug["name"]: bug for bug in one["bugs"]}
    assert bugs[DEVICE]["covered"] and bugs[DEVICE]["cover"] == "default"
    assert bugs[DEVICE]["drop_at"] == bugs[DEVICE]["fixed_in"] == "2.4.0"
    assert bugs["lightning-app"]["cover"] == "none" and bugs["lightning-app"]["move_to"] == "2.3.3"
    assert any("also installs the newest pytorch-lightning" in note for note in one["notes"])


def test_release_of_another_distribution_has_its_known_bugs(audit: Audit) -> None:
    fabric, pytorch = audit.audited("lightning-fabric==2.2.5", "pytorch-lightning==2.2.5")
    assert "fabric-submodule-sync" in names(fabric) and DEVICE not in names(fabric)
    assert DEVICE in names(pytorch) and "lightning-app" not in names(pytorch)


def test_release_of_1x_has_its_known_bugs(audit: Audit) -> None:
    old, newer = audit.audited("pytorch-lightning==1.7.7", "lightning==1.9.5")
    patches = ("import-without-pkg-resources", "own-checkpoint-load", "scheduler-choices", "scheduler-types")
    opens = ("torchmetrics-compare-version", "trusted-checkpoint-load", "metadata-of-1x")
    assert names(old) == {*patches, *opens} and not old["notes"]
    assert {"fit-resets-should-stop", "app-beside-lightning-cloud"} <= names(newer)
    assert ["Releases 1.5 to 1.7" in one["headline"] for one in (old, newer)] == [True, False]
    assert audit("pytorch-lightning==1.7.7") == 1
    said = " ".join(audit.out.split())
    assert "Releases 1.5 to 1.7 were checked only for bugs that keep them from running" in said
    assert said.lower().count("releases 1.5 to 1.7") == 1, "and says it once"


def test_exit_status_follows_fail_on_and_ignore(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = "pytorch-lightning==2.6.6", "lightning==2.2.5"
    assert (audit(new), audit(new, "--fail-on", "any")) == (0, 1)
    assert (audit(old), audit(old, "--fail-on", "never")) == (1, 0)
    (one,) = audit.audited(old, "--ignore", "lightning-app")
    assert audit.status == 0 and "lightning-app" not in names(one)
    monkeypatch.setenv("LIGHTNING_PATCHES", "off")
    (one,) = audit.audited(new)
    assert audit.status == 1 and not any(bug["covered"] for bug in one["bugs"])
    assert "LIGHTNING_PATCHES=off leaves it out" in {bug["reason"] for bug in one["bugs"]}


def test_opt_in_patch_is_not_covered_unless_selected(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = next(patch for patch in all_patches() if not patch.default)
    version = sorted(gate.affected_releases(patch))[0]
    ignored = [word for bug in UNPATCHED for word in ("--ignore", bug.name)]
    spec = (f"pytorch-lightning=={version}", *ignored)
    (one,) = audit.audited(*spec)
    bug = next(bug for bug in one["bugs"] if bug["name"] == patch.name)
    assert (audit.status, bug["cover"], bug["covered"]) == (0, "opt-in", False)
    assert f"default,{patch.name}" in bug["reason"]
    assert audit(*spec, "--fail-on", "opt-in") == 1
    monkeypatch.setenv("LIGHTNING_PATCHES", "all")
    assert audit(*spec, "--fail-on", "opt-in") == 0


@pytest.mark.parametrize("version", ["2.6.2", "2.6.3"])
def test_compromised_release_lists_only_the_compromise(audit: Audit, version: str) -> None:
    (one,) = audit.audited(f"lightning=={version}")
    assert [bug["name"] for bug in one["bugs"]] == ["compromised-release"]
    assert one["bugs"][0]["advisories"] == ["GHSA-w37p-236h-pfx3"]
    assert audit(f"lightning=={version}") == 1
    assert audit.out.startswith(f"lightning {version} is a compromised release: nothing in it is patched")
    assert not any(words in audit.out for words in ("1 known bug", "Upstream has fixed", "counts as applied"))


@pytest.mark.parametrize("version", ["2.7.0", "1.7.7", "9", "2.2.77"])
def test_unknown_release_has_no_bugs(audit: Audit, version: str) -> None:
    (one,) = audit.audited(f"lightning=={version}")
    assert (audit.status, one["known"], one["bugs"]) == (3, False, [])
    assert audit(f"lightning=={version}") == 3
    assert f"lightning {version} is not a known release: its bugs are unknown" in audit.out
    assert not any(words in audit.out for words in ("Upstream has fixed", "LIGHTNING_PATCHES", "also installs"))
    assert audit.audited("lightning==2.2.5+cu118")[0]["known"]
    assert audit(f"lightning=={version}", "pytorch-lightning==2.6.2") == 1


LOCK = '[[package]]\nname = "numpy"\nversion = "2.0"\n[[package]]\nname = "lightning"\nversion = "2.2.5"\n'
STEP = "jobs:\n  a:\n    steps:\n    - run: {}\n"
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
def test_requirements_of_a_project_are_found(audit: Audit, name: str) -> None:
    path = audit.write(name, PROJECTS[name])
    for arguments in ([path], ["-r", path]):
        (one,) = audit.audited(*arguments)
        assert (audit.status, one["distribution"], one["version"]) == (1, "lightning", "2.2.5")
        assert "lightning" in PROJECTS[name].splitlines()[one["line"] - 1]


FORMS = {
    "dev-requirements.txt": "lightning==2.2.5\n",
    "requirements2.lock": "lightning==2.2.5\n    # via x\n",
    "reqs.txt": "numpy\nlightning==2.2.5\n",
    "spec-file.txt": "# platform: linux-64\nlightning=2.2.5=pyhd8ed1ab_0\n",
    "linux.txt": "@EXPLICIT\nhttps://x.org/noarch/lightning-2.2.5-pyhd8ed1ab_0.conda\n",
    "env_torch.cpu.yml": "dependencies:\n- lightning=2.2.5\n",
    "python_env.yaml": "python: 3.10\ndependencies:\n- lightning==2.2.5\n",
    "tox.ini": "[testenv]\ndeps =\n    pytest\n    py39: lightning==2.2.5\n",
    "commands/tox.ini": "[testenv]\ncommands =\n    pip install lightning==2.2.5\n",
    "setup.cfg": "[options]\ninstall_requires =\n    lightning==2.2.5\n",
    "extras/setup.cfg": "[options.extras_require]\ntrain =\n    lightning==2.2.5\n",
    "setup.py": "setup(install_requires=['lightning==2.2.5'], description='for lightning==1.9.5')\n",
    "named/setup.py": "needed = ['numpy']\nneeded += ['lightning==2.2.5']\nsetup(install_requires=needed)\n",
    "extras/setup.py": "extras = {}\nextras['a'] = ['lightning==2.2.5']\nsetup(extras_require=extras)\n",
    "dict/setup.py": "more = dict(install_requires=['lightning==2.2.5'])\nsetup(**more)\n",
    "install.sh": "PL=2.2.5\nsrun python -m pip install \\\n  lightning==$PL\n",
    "job.sbatch": "#SBATCH -N1\nsource activate x && pip install lightning==2.2.5\n",
    "container.def": "Bootstrap: docker\n%post\n    pip install lightning==2.2.5\n",
    "Makefile": "PL := lightning==2.2.5\ninstall:\n\t@pip install $(PL)\n",
    "Jenkinsfile": "stage { sh 'pip install lightning==2.2.5' }\n",
    ".gitlab-ci.yml": "a:\n  script:\n  - pip install lightning==2.2.5\n",
    ".circleci/config.yml": "jobs:\n  a:\n    steps:\n    - run:\n        command: pip install lightning==2.2.5\n",
    "cog.yaml": "build:\n  python_packages:\n  - lightning==2.2.5\n",
    "meta.yaml": "{% set a = 1 %}\nrequirements:\n  run:\n  - lightning ==2.2.5\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_directory_with_an_unusual_file_is_audited(audit: Audit, name: str) -> None:
    audit.write("requirements.txt", "numpy\n")
    path = audit.write(name, FORMS[name])
    document = audit.json(audit.directory)
    assert [(one["version"], one["file"]) for one in document["audited"]] == [("2.2.5", str(path))]
    assert not document["unclear"] and not document["skipped"]
    line = FORMS[name].splitlines()[document["audited"][0]["line"] - 1]
    assert "lightning" in line or "install" in line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "# x\n    pip install lightning==2.2.5\n"),
        ("noxfile.py", "import nox\nsession.install('lightning==2.2.5')\n"),
        ("hatch.toml", "[envs.default]\ndependencies = ['pytorch-lightning==2.2.5']\n"),
        ("pyproject.toml", "[tool.hatch.envs.default]\ndependencies = ['pytorch-lightning==2.2.5']\n"),
        ("playbook.yml", "- hosts: all\n  tasks:\n  - pip: {name: lightning==2.2.5}\n"),
        ("setup.py", "setup(install_requires=read('a', 'pytorch-lightning'))\n"),
        ("f/setup.py", "setup(install_requires=[f'lightning=={version}'])\n"),
        ("train.py", "import lightning as L\n"),
        ("train.ipynb", '{"cells": [{"cell_type": "code", "source": ["!git clone a\\n", "!pip install ./a\\n", '
         '"import lightning"]}]}'),
    ],
)  # fmt: skip
def test_file_that_names_lightning_in_another_form_is_named(audit: Audit, name: str, text: str) -> None:
    audit.write("requirements.txt", "numpy\n")
    path = audit.write(name, text)
    document = audit.json(audit.directory)
    assert audit.status == 3 and not document["audited"]
    assert [str(path) in one for one in document["skipped"]] == [True]
    assert audit(audit.directory) == 3 and audit.out.startswith("No file that `audit` reads names Lightning.")


QUIET = {
    "a plain base image": {"Dockerfile": "FROM python:3.11\nRUN pip install numpy\n"},
    "a project with setup.py": {"setup.py": "setup()\n", ".github/workflows/a.yml": STEP.format("pip install -e .")},
    "no committed lock": {"pyproject.toml": "[project]\nname='x'\n", ".github/workflows/a.yml": STEP.format("uv sync")},
    "a file that a command writes": {"a.sh": "conda-merge b.yml > $PWD/env.yml\nconda env update -f env.yml\n"},
    "an ignore file": {"Dockerfile.dockerignore": "*\n!lightning\n"},
    "a matrix": {
        "requirements/a.txt": "",
        ".github/workflows/a.yml": "jobs:\n  a:\n    strategy: {matrix: {file: [a]}}\n    steps:\n"
        "    - run: pip install -r requirements/${{ matrix.file }}.txt\n",
    },
}


@pytest.mark.parametrize("case", QUIET)
def test_directory_without_a_gap_has_no_note(audit: Audit, case: str) -> None:
    for name, text in {"requirements.txt": "lightning==2.2.5\n", **QUIET[case]}.items():
        audit.write(name, text)
    document = audit.json(audit.directory)
    assert (document["unclear"], document["skipped"]) == ([], [])
    assert len(document["audited"]) == 1


ENTRIES = {
    "uv.lock": 'version = 1\n[[package]]\nname = "lightning"\nversion = "2.2.5"\ndependencies = [\n'
     '    { name = "pytorch-lightning" },\n]\n[[package]]\nname = "lightning"\nversion = "2.6.6"\n[[package]]\n'
     'name = "pytorch-lightning"\nversion = "2.3.3"\n',
    "poetry.lock": '[[package]]\nname = "lightning"\nversion = "2.2.5"\n[package.dependencies]\n'
     'pytorch-lightning = "*"\n[[package]]\nname = "lightning"\nversion = "2.6.6"\n[[package]]\n'
     'name = "pytorch-lightning"\nversion = "2.3.3"\n',
    "pylock.toml": '[[packages]]\nname = "lightning"\nversion = "2.2.5"\n[[packages.wheels]]\n'
     'name = "lightning-2.2.5-py3-none-any.whl"\n[[packages]]\nname = "lightning"\nversion = "2.6.6"\n'
     '[[packages]]\nname = "pytorch-lightning"\nversion = "2.3.3"\n',
    "Pipfile.lock": '{"_meta": {},\n"default": {\n    "lightning": {\n        "version": "==2.2.5"}},\n'
     '"develop": {\n    "pytorch-lightning": {\n        "version": "==2.3.3"},\n    "lightning": {\n'
     '        "version": "==2.6.6"}}}\n',
    "conda-lock.yml": "package:\n- name: lightning\n  version: 2.2.5\n  dependencies: {pytorch-lightning: '*'}\n"
     "- name: lightning\n  version: 2.6.6\n- name: pytorch-lightning\n  version: 2.3.3\n",
    "pixi.lock": "packages:\n- conda: https://x.org/noarch/lightning-2.2.5-py_0.conda\n"
     "  depends: [pytorch-lightning]\n- conda: https://x.org/noarch/lightning-2.6.6-py_0.conda\n"
     "- pypi: https://x.org/pytorch_lightning-2.3.3-py3-none-any.whl\n",
    "environment.yml": "name: lightning\ndependencies:\n- pip\n- pip:\n  # lightning==2.2.4\n"
     "  - lightning==2.2.5\n  - lightning==2.6.6\n  - pytorch-lightning==2.3.3\n",
    "requirements.txt": "# pytorch-lightning\nlightning==2.2.5\nlightning==2.6.6\npytorch-lightning==2.3.3\n",
    "pyproject.toml": '[project]\nname = "pytorch-lightning-lightning"\n'
     'dependencies = ["pytorch-lightning==2.3.3"]\noptional-dependencies.a = ["lightning==2.2.5"]\n'
     'optional-dependencies.b = [\n    "lightning==2.6.6"]\n',
    ".github/workflows/ci.yml": "name: pytorch-lightning and lightning\njobs:\n  a:\n    steps:\n    - run: |\n"
     "        echo lightning\n        pip install lightning==2.2.5\n    - run: pip install lightning==2.6.6\n"
     "    - run: pip install \\\n          pytorch-lightning==2.3.3\n",
}  # fmt: skip
"""The same three requirements."""


@pytest.mark.parametrize("name", ENTRIES)
def test_reported_line_names_the_release(audit: Audit, name: str) -> None:
    path = audit.write(name, ENTRIES[name])
    lines = path.read_text().splitlines()
    found = {(one["distribution"], one["version"]): one["line"] for one in audit.audited(path)}
    assert sorted(found) == [("lightning", "2.2.5"), ("lightning", "2.6.6"), ("pytorch-lightning", "2.3.3")]
    for (distribution, version), line in found.items():
        own = lines[line - 1]
        assert re.search(rf"(?<!-){distribution.replace('-', '[-_]')}\b", own), own
        assert version in own + "".join(lines[line : line + 1]), own


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
    "named stage": "FROM b AS c\nCOPY . /x/\nFROM c\nRUN pip install -r /x/requirements.txt",
    "mount": "RUN --mount=type=bind,source=requirements.txt,target=/r.txt pip install -r /r.txt",
    "project": "WORKDIR /app\nCOPY pyproject.toml .\nRUN pip install .",
    "lock": "WORKDIR /app\nCOPY uv.lock pyproject.toml ./\nRUN uv sync --frozen",
    "conda": "COPY environment.yml /tmp/\nRUN conda env update -n base -f /tmp/environment.yml",
    "includes": "COPY deps /x\nRUN pip install -r /x/more.txt",
}


@pytest.mark.parametrize("case", DOCKERFILES)
def test_dockerfile_includes_copied_files(audit: Audit, case: str) -> None:
    for name in ("requirements.txt", "deps/requirements.txt"):
        audit.write(name, "lightning==2.2.5\n")
    audit.write("deps/more.txt", "-r requirements.txt\n")
    for name in ("pyproject.toml", "uv.lock", "environment.yml"):
        audit.write(name, PROJECTS[name])
    (one,) = audit.audited(audit.write("Dockerfile", f"FROM python:3.11\n{DOCKERFILES[case]}\n"))
    file = Path(one["file"])
    assert one["version"] == "2.2.5" and file.parent in (audit.directory, audit.directory / "deps")
    assert "lightning" in file.read_text().splitlines()[one["line"] - 1]


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
def test_dockerfile_never_reads_outside_its_build_context(audit: Audit, text: str) -> None:
    out, context = audit.directory / "out", audit.directory / "context"
    for name in ("pyproject.toml", "uv.lock", "environment.yml"):
        audit.write(f"out/{name}", PROJECTS[name])
    audit.write("out/requirements.txt", "lightning==2.2.5\n")
    audit.write("context/includes.txt", f"-r {out}/requirements.txt\n-r ../out/requirements.txt\n")
    (context / "link.txt").symlink_to(out / "requirements.txt")
    (context / "link").symlink_to(out)
    assert audit(audit.write("context/Dockerfile", f"FROM a\n{text.format(out=out)}\n")) == 2
    assert "was not read, so it is unknown if Lightning is required" in audit.err
    assert audit(context, "--fail-on", "never") == 0
    assert "was not read" in audit.out
    assert audit(context) == (3 if "not read: " in audit.out else 0)


def test_included_requirements_files_are_read_once(audit: Audit) -> None:
    audit.write("more.txt", "-r all.txt\npytorch-lightning==2.6.6 ; python_version < '3'\n")
    path = audit.write(
        "all.txt",
        "# training\ntorch>=2\nlightning==2.2.5 \\\n    --hash=sha256:00  # pinned\n-r more.txt\n./local\n--pre\n"
        "lightning-fabric @ https://example.org/x.whl\n",
    )
    found = [tuple(one[key] for key in ("distribution", "version", "file", "line")) for one in audit.audited(path)]
    assert found == [("lightning", "2.2.5", str(path), 3), ("lightning-fabric", None, str(path), 8)]
    assert audit.status == 1
    assert audit.audited("-r", audit.write("none.txt", "torch\n")) == [] and audit.status == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("environment.yml", "dependencies:\n  - pip\n  - pip:\n    - -r more.txt\n"),
        ("env.yml", "dependencies:\n  - pip:\n    - -r file:more.txt\n"),
        ("pyproject.toml", '[tool.setuptools.dynamic]\ndependencies = {file = ["more.txt"]}\n'),
        ("requirements.txt", "--extra-index-url https://a.org\n-c more.txt\n"),
        ("action.yml", "runs:\n  steps:\n  - run: pip install --constraint more.txt torch\n"),
        ("train.ipynb", '{"cells": [{"cell_type": "code", "source": "!pip install -rmore.txt"}]}'),
    ],
)
def test_file_included_by_any_format_is_read(audit: Audit, name: str, text: str) -> None:
    more = audit.write("more.txt", "torch\nlightning==2.2.5\n".encode("utf-16"))
    (one,) = audit.audited(audit.write(name, text))
    assert (one["version"], one["file"], one["line"]) == ("2.2.5", str(more), 2)


@pytest.mark.parametrize(
    "step",
    [
        "run: pip install -r sub/requirements.txt",
        "run: cd sub && pip install -r requirements.txt",
        "{run: pip install -r requirements.txt, working-directory: sub}",
    ],
)
def test_workflow_steps_run_in_the_checkout(audit: Audit, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = audit.write("sub/requirements.txt", "lightning==2.2.5\n")
    audit.write(".github/workflows/ci.yml", f"jobs:\n  a:\n    steps:\n    - {step}\n")
    monkeypatch.chdir(audit.directory)
    (one,) = audit.audited(".github/workflows/ci.yml")
    assert (one["version"], Path(one["file"]).resolve()) == ("2.2.5", path)


def test_context_option_sets_the_build_context(audit: Audit) -> None:
    audit.write("requirements.in", "lightning==2.2.5\n")
    path = audit.write("docker/Dockerfile", "FROM a\nCOPY requirements.in /x/\nRUN pip install -r /x/requirements.in\n")
    assert audit(path) == 2
    assert audit.audited(path, "--context", audit.directory)[0]["version"] == "2.2.5"
    assert {one["version"] for one in audit.audited(audit.directory)} == {"2.2.5"}


@pytest.mark.parametrize(
    ("text", "gone", "there"),
    [
        ("torch==2.2.0+cu118", "own-checkpoint-load trusted-checkpoint-load tf32-advice", "rich-progress-bar"),
        ("torch>=2.1,<2.6", "own-checkpoint-load", ""),
        ("torch>=2.1", "", "own-checkpoint-load"),
        ("torch==2.6.0", "tf32-advice", "own-checkpoint-load"),
        ("torch==2.2.0\ntorch==2.7.0", "", "own-checkpoint-load"),
        ("torch==2.2.0 ; python_version < '3'", "", "own-checkpoint-load"),
        ("setuptools<81", "import-without-pkg-resources", ""),
        ("rich==13.7", "rich-progress-bar", ""),
        ("numpy", "", "rich-progress-bar"),
    ],
)
def test_bugs_that_the_same_file_excludes_are_not_counted(audit: Audit, text: str, gone: str, there: str) -> None:
    (one,) = audit.audited(audit.write("requirements.txt", f"{text}\nlightning==2.2.5\n"))
    excluded, kept, bugs = set(gone.split()), set(there.split()), names(one)
    assert excluded == set(one["excluded"]) & (excluded | kept) and not excluded & bugs and kept <= bugs
    says = any("bugs that the other requirements of the file exclude" in note for note in one["notes"])
    assert says is bool(one["excluded"])


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
def test_bugs_are_fixed_if_the_project_uses_the_patches(audit: Audit, files: dict[str, str], is_seen: bool) -> None:
    for name, text in {"requirements.txt": "lightning==2.2.5\n", **files}.items():
        audit.write(name, text)
    file = audit.directory / ("Dockerfile" if "Dockerfile" in files else "requirements.txt")
    for what in (file, audit.directory):
        for one in audit.audited(what):
            assert one["has_patches"] is is_seen
            assert ("would be fixed by the patches" in one["headline"]) is not is_seen
            assert ("import lightning_patches" in one["do"]) is not is_seen
        assert audit(what, "--format", "github", "--all") == 1
        assert ("would be fixed by the patches" in audit.out) is not is_seen


def test_directory_is_searched(audit: Audit) -> None:
    expected = {"uv.lock", "dev/pyproject.toml", "environment.yml", "train.ipynb", ".github/workflows/ci.yml"}
    for name in expected:
        audit.write(name, PROJECTS[name])
    audit.write("pyproject.toml", '[project]\ndependencies = ["lightning>=2.0"]\n')
    for name in (".venv/requirements.txt", "a/node_modules/requirements.txt", "Dockerfile", "b/requirements.txt"):
        audit.write(name, "torch\n" if name[0] == "b" else "lightning==2.0.0\n")
    (audit.directory / "loop").symlink_to(audit.directory)
    audited = audit.audited(audit.directory)
    assert {Path(one["file"]).relative_to(audit.directory).as_posix() for one in audited} == expected
    assert {one["version"] for one in audited} == {"2.2.5"}, "what is locked is what is installed"
    assert audit(audit.write("empty/image.png").parent) == 2
    assert "has no file that `audit` reads" in audit.err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("train.ipynb", '{"cells": [{"cell_type": "code", "source": "import lightning"}]}', "does not install it"),
        ("docker-compose.yml", "services: {}\n", "it has no dependencies"),
        ("requirements.txt", "-r https://a.org/requirements.txt\n", "is a URL, and was not downloaded"),
        ("requirements.txt", bytes(range(256)), "requirements.txt cannot be read: it is not text\n"),
        ("package.json", "{}", "is not supported. `audit` reads"),
        ("environment.yml", "- lightning=2.2.5\n", "it has no dependencies"),
        ("environment.yml", "a: [\n", "cannot be understood"),
        ("uv.lock", "lightning 2.2.5", "cannot be understood"),
        ("Pipfile.lock", "[]", "cannot be understood"),
        ("requirements.txt", "lightning 2.2.5\n", "line 1: a requirement of Lightning cannot be understood"),
        (
            "Dockerfile",
            "FROM pytorchlightning/pytorch_lightning\nRUN pip install numpy\n",
            "does not install Lightning",
        ),
        ("Dockerfile", "FROM a\nRUN conda create -n lightning -c lightning x\n", "does not install Lightning by name"),
        ("Dockerfile", "FROM a\nRUN pip install -t lightning numpy\n", "does not install Lightning by name"),
        ("Dockerfile", "FROM a\nRUN pip install lightning==$UNKNOWN\n", "cannot be understood"),
        ("pyproject.toml", '[project]\nname = "x"\ndynamic = ["dependencies"]\n', "leaves its dependencies"),
    ],
)
def test_unsupported_file_is_refused(audit: Audit, name: str, text: Any, words: str) -> None:
    assert audit("-r", audit.write(name, text)) == 2
    assert words in audit.err


def test_missing_parser_library_is_reported(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    for missing, name in (("tomllib", "uv.lock"), ("yaml", "environment.yml")):
        monkeypatch.setitem(sys.modules, missing, None)
        monkeypatch.setitem(sys.modules, "tomli", None)
        assert audit(audit.write(name, PROJECTS[name])) == 2
        assert "pip install" in audit.err


def test_unreadable_file_of_a_directory_is_reported(audit: Audit) -> None:
    audit.write("uv.lock", "no toml")
    binary = audit.write("requirements-dev.txt", bytes(range(256)))
    audit.write("requirements.txt", "torch\n")
    assert audit(audit.directory) == 2
    assert audit.out.startswith("Some files may require Lightning") and "uv.lock cannot be understood" in audit.out
    assert f"unclear: {binary} cannot be read: it is not text." in audit.out
    assert audit.sarif(audit.directory)["invocations"][0]["executionSuccessful"] is False and audit.status == 2
    audit.write("requirements.txt", "lightning==2.2.5\n")
    document = audit.json(audit.directory)
    assert audit.status == 1 and len(document["audited"]) == 1
    assert any("uv.lock cannot" in text for text in document["unclear"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--requirement|torch==2.6", "not a requirement of lightning"),
        ("--requirement|lightning==2.2.5; python_version < '3'", "its marker is for another Python"),
        ("--requirement|lightning=>2.2", "not a requirement such as"),
        ("-r|no_such_file.txt", "cannot be read"),
        ("--ignore|nothing-of-that-name", "there is no bug"),
        ("2.2.5", "lightning==2.2.5?"),
        ("lightnig==2.2.5", "Did you mean lightning==2.2.5?"),
        ("requirments.txt", "there is no file 'requirments.txt'"),
        ("nope", "there is no file 'nope', and"),
        ("lightning.log", "there is no file 'lightning.log', and it is not a requirement of lightning,"),
        ("my log.txt", "There is no file 'my log.txt', and it is not a requirement such as"),
        ("conf/nope.log", "conf/nope.log cannot be read: No such file"),
        ("torch=2.2.5", "'torch=2.2.5' is not a requirement of lightning"),
    ],
)
def test_wrong_argument_is_refused_with_a_suggestion(audit: Audit, arguments: str, words: str) -> None:
    assert audit(*arguments.split("|")) == 2
    assert words in audit.err


@pytest.mark.skipif(os.name == "nt", reason="Windows does not delete a directory that is in use")
@pytest.mark.parametrize("what", [".", "requirements.txt", "../requirements.txt"])
def test_deleted_working_directory_is_named(tmp_path: Path, what: str) -> None:
    program = (
        "import os, sys; from lightning_patches import cli; os.rmdir(os.getcwd()); sys.exit(cli.main(sys.argv[1:]))"
    )
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, "audit", what],
        cwd=tmp_path / "gone", env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and "This is a bug" not in done.stderr, done
    assert "the working directory no longer exists" in done.stderr


def test_every_format_lists_the_bugs_without_a_patch(audit: Audit) -> None:
    """``--all`` also lists the others."""
    path = audit.write("requirements.txt", "torch\nlightning==2.2.5\n")
    (one,) = audit.audited(path)
    open_ones, all_ones = {bug["name"] for bug in one["bugs"] if not bug["covered"]}, names(one)
    assert 0 < len(open_ones) < len(all_ones) / 2
    for options, expected in (((), open_ones), (("--all",), all_ones)):
        assert audit(path, "--format", "github", *options) == 1
        assert audit.out.startswith(f"::error file={path},line=2,title=lightning==2.2.5::lightning 2.2.5 has ")
        assert len(audit.out.splitlines()) == 1
        assert "lightning-app" in audit.out and (DEVICE in audit.out) is bool(options)
        run = audit.sarif(path, *options)
        assert {result["ruleId"] for result in run["results"]} == expected
        assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == expected
        audit(path, *options)
        rows = re.findall(r"^([a-z0-9-]+) +\w+ +(?:yes|NO|opt-in) ", audit.out, re.MULTILINE)
        assert set(rows) == expected
        audit(path, "--format", "markdown", *options)
        assert (f"| `{DEVICE}` | crash | yes | 2.4.0 |" in audit.out) is bool(options)
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": str(path)}, "region": {"startLine": 2}}
    assert audit("lightning==2.7.0", "--format", "github") == 3
    assert audit.out.startswith("::warning title=lightning==2.7.0::lightning 2.7.0 is not a known release")


@pytest.mark.parametrize("in_file", [False, True], ids=["command line", "file"])
def test_sarif_marks_unknown_releases(audit: Audit, in_file: bool) -> None:
    """A file without results would mean that there is no bug."""
    path = audit.write("requirements.txt", "torch\nlightning==2.7.0\n")
    run = audit.sarif(path if in_file else "lightning==2.7.0")
    (invocation,) = run["invocations"]
    error, note = invocation["toolExecutionNotifications"]
    assert (audit.status, run["results"], invocation["executionSuccessful"]) == (3, [], False)
    assert (error["level"], note["level"]) == ("error", "note")
    assert "lightning 2.7.0 is not a known release: its bugs are unknown" in error["message"]["text"]
    assert note["message"]["text"].startswith("the known releases are 1.8.0 to ")
    assert [len(said.get("locations", [])) for said in (error, note)] == [int(in_file)] * 2
    if in_file:
        assert error["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}
    run = audit.sarif("lightning==2.2.5")
    (invocation,) = run["invocations"]
    assert run["results"] and invocation["executionSuccessful"] is True
    assert {said["level"] for said in invocation["toolExecutionNotifications"]} <= {"note"}


@pytest.mark.parametrize("form", ["text", "github", "markdown", "sarif"])
def test_suggested_ignore_option_silences_all_findings(audit: Audit, form: str) -> None:
    path = audit.write("requirements.txt", "lightning==2.2.5\n")
    assert audit(path, "--format", form) == 1
    (accepted,) = re.findall(r"--ignore [\w-]+", (audit.out if form == "text" else audit.err).splitlines()[-1])
    assert audit(path, "--format", form, *accepted.split()) == 0
    assert "--ignore" not in audit.out + audit.err


def test_environment_is_audited() -> None:
    """Installed releases are recognized by their code, without an import."""
    program = (
        "import sys; from lightning_patches.cli import main; status = main(['audit', '--all']); "
        "print(status, sorted({'torch', 'lightning'} & set(sys.modules)))"
    )
    variables = {**environment_of(Variant("lightning", "2.3.3")), "_LIGHTNING_PATCHES_IMPORT_ONLY": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("lightning 2.3.3 has "), done
    assert any(line.startswith(DEVICE) and " yes " in line for line in lines)
    assert lines[-1] == "0 []"


def audit_beside(path: Path, packages: dict[str, str], more: bytes = b"") -> dict[str, Any]:
    """Audit an environment with lightning 2.2.5 and these packages in ``path``."""
    for name, version in packages.items():
        metadata = path / f"{name}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_bytes(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode() + more)
    variables = {**environment_of(Variant("lightning", "2.2.5")), "_LIGHTNING_PATCHES_IMPORT_ONLY": "1"}
    variables["PYTHONPATH"] = os.pathsep.join([str(path), variables["PYTHONPATH"]])
    command = [sys.executable, "-m", "lightning_patches", "audit", "--json"]
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "This is a bug" not in done.stderr
    (one,) = json.loads(done.stdout)["audited"]
    return dict(one)


def test_environment_has_no_bug_that_its_packages_exclude(tmp_path: Path) -> None:
    one = audit_beside(tmp_path, {"torch": "2.2.0+cu118", "rich": "14.1"})
    assert {"own-checkpoint-load", "tf32-advice"} <= set(one["excluded"]) and "rich-progress-bar" in names(one)
    assert ("profiler-nested-actions" in one["excluded"]) is (sys.version_info < (3, 12))
    assert not names(one) & set(one["excluded"])
    assert any("bugs that the other packages of this environment exclude" in note for note in one["notes"])


def test_metadata_that_are_not_utf_8_exclude_no_bug(tmp_path: Path) -> None:
    one = audit_beside(tmp_path, {"torch": "1.0", "rich": "1.0", "setuptools": "1.0"}, b"Author: \xff\n")
    assert {"own-checkpoint-load", "rich-progress-bar"} <= names(one)
