"""``audit`` of an untrusted repository reads and shows no file outside of it, and lists unread parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lightning_patches.cli.audit import audited as audited_releases
from lightning_patches.cli.audit import collect, directories
from lightning_patches.cli.audit.formats import FORMATS
from tests.support.variants import ROOT
from tests.unit.commands import Audit

SECRET = "the-password-of-another-user"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project beside a file that must not be read."""
    (tmp_path / "secret.txt").write_text(f"{SECRET}\nlightning==2.3.2\nlightning {SECRET}\n")
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


OUTSIDE = {
    "requirements.txt": "-r {path}\n",
    "constraints.txt": "-c{path}\n",
    "requirements/dev.in": "--requirement={path}\n",
    "pyproject.toml": '[project]\nname = "x"\ndynamic = ["dependencies"]\n[tool.setuptools.dynamic]\n'
    'dependencies = {{file = ["{path}"]}}\n',
    "environment.yml": "dependencies:\n- pip:\n  - -r {path}\n",
    "Dockerfile": "FROM a\nCOPY {path} /x/\nRUN pip install -r /x/secret.txt\n",
    "copied.Dockerfile": "FROM a\nCOPY . /x\nRUN pip install -r {path}\n",
    "conda.Dockerfile": "FROM a\nCOPY . /\nRUN conda env create --file {path}\n",
    "environment/Dockerfile": "FROM a\nCOPY environment.yml /\nRUN conda env create -f /environment.yml\n",
    ".github/workflows/ci.yml": "jobs:\n  a:\n    steps:\n    - run: pip install -r {path}\n",
    "train.ipynb": '{{"cells": [{{"cell_type": "code", "source": "!pip install -r {path}"}}]}}',
}
"""Files of a project that name a file elsewhere."""


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("way", ["absolute", "relative", "link"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_file_outside_of_the_project_is_not_read(audit: Audit, project: Path, name: str, way: str, form: str) -> None:
    secret = project.parent / "secret.txt"
    file = write(project / name, "")
    path = {"absolute": str(secret), "relative": os.path.relpath(secret, file.parent), "link": "secret.txt"}[way]
    file.write_text(OUTSIDE[name].format(path=path))
    if name == "environment/Dockerfile":
        write(file.parent / "environment.yml", OUTSIDE["environment.yml"].format(path=path))
    if way == "link":
        for directory in {project, file.parent}:
            (directory / "secret.txt").symlink_to(secret)
    for what in (project, file):
        status = audit(what, "--format", form)
        said = audit.out + audit.err
        assert SECRET not in said and "2.3.2" not in said
        assert status == (3 if what == project else 2), said
        assert "secret.txt" in said or form == "github" or what == project and form == "sarif", said


OPENED = """
import json, os, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event in ("open", "os.scandir") else None)
from lightning_patches.cli import main
project, around = sys.argv[1:]
status = main(["audit", project])
real = [os.path.realpath(path) for path in opened if isinstance(path, str)]
found = [path for path in real if path.startswith(around)]
print(json.dumps([[path for path in found if not path.startswith(project)], len(found), status]))
"""


def test_only_files_of_the_project_are_opened(project: Path) -> None:
    """Records the files that Python opens for all of these projects."""
    secret = project.parent / "secret.txt"
    for name, text in OUTSIDE.items():
        write(project / name, text.format(path=os.path.relpath(secret, (project / name).parent)))
    (project / "requirements-linked.txt").symlink_to(secret)
    (project / "linked").symlink_to(project.parent)
    write(
        project / "requirements-local.txt", f"-e ..\n-e file://{project.parent}\nx @ file://{secret}\n../secret.txt\n"
    )
    command = [sys.executable, "-c", OPENED, str(project), str(project.parent)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    outside, opened, status = json.loads(done.stdout.splitlines()[-1])
    assert (outside, status) == ([], 3), done
    assert opened > len(OUTSIDE)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", f"lightning {SECRET}\n"),
        ("requirements.txt", f"{SECRET} is not a requirement\n"),
        ("requirements.txt", f"torch\n-r https://user:{SECRET}@host/requirements.txt\n"),
        ("requirements.txt", f"lightning @ https://user:{SECRET}@host/lightning.whl\n"),
        ("uv.lock", f"{SECRET}\n"),
        ("uv.lock", f"[{SECRET}]\n[{SECRET}]\n"),
        ("Pipfile.lock", SECRET),
        ("environment.yml", f"a: *{SECRET}\n"),
        ("environment.yml", f"dependencies: [\n{SECRET}\n"),
        ("environment.yml", f"{SECRET}: 1\n"),
        ("pyproject.toml", f'[project]\ndependencies = {{"{SECRET}" = 1}}\n'),
        ("Dockerfile", f"FROM a\nRUN pip install 'lightning {SECRET}\n"),
        ("train.ipynb", f'{{"cells": [{{"{SECRET}": 1}}]}}'),
        (".github/workflows/ci.yml", f"jobs:\n  a:\n    steps:\n    - run: pip install 'lightning {SECRET}\n"),
    ],
)
def test_malformed_text_is_not_quoted(audit: Audit, project: Path, name: str, text: str) -> None:
    file = write(project / name, text)
    for what in (project, file):
        for form in FORMATS:
            audit(what, "--format", form)
            assert SECRET not in audit.out + audit.err


def test_include_within_the_checkout_is_read(audit: Audit, project: Path) -> None:
    write(project / "base.txt", "lightning==2.2.5\n")
    file = write(project / "deps" / "requirements.txt", "-r ../base.txt\n")
    assert audit(file) == 2, "without .git the project is the directory of the file"
    assert f"{project / 'base.txt'} is not in the project" in audit.err
    (project / ".git").mkdir()
    for what in (file, project):
        assert [one["version"] for one in audit.audited(what)] == ["2.2.5"]


def test_home_with_git_is_not_a_checkout(audit: Audit, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    (project.parent / ".git").mkdir()
    file = write(project / "requirements.txt", "-r ../secret.txt\n")
    assert audit(file) == 2
    assert "is not in the project" in audit.err


def test_workflow_runs_in_the_parent_of_the_last_github_directory(audit: Audit, tmp_path: Path) -> None:
    checkout = tmp_path / ".github" / "workflows" / "cloned"
    write(tmp_path / "requirements.txt", "lightning==2.2.5\n")
    write(checkout / "requirements.txt", "lightning==2.3.3\n")
    file = write(
        checkout / ".github" / "workflows" / "ci.yml",
        "jobs:\n  a:\n    steps:\n    - run: pip install -r requirements.txt\n",
    )
    for what in (checkout, file):
        assert {one["version"] for one in audit.audited(what)} == {"2.3.3"}


class TestUnreadParts:
    """Parts that were not read are listed, and the exit status is not 0."""

    def check(self, audit: Audit, directory: Path, *words: str) -> None:
        document = audit.json(directory)
        assert audit.status == 3
        assert all(any(word in text for text in document["skipped"]) for word in words), document["skipped"]
        assert audit(directory) == 3
        assert "There is no Lightning here" not in audit.out and "not read: " in audit.out
        assert audit.sarif(directory)["invocations"][0]["executionSuccessful"] is False and audit.status == 3
        for form in ("github", "markdown"):
            assert audit(directory, "--format", form) == 3
            assert words[0] in audit.out
        assert audit(directory, "--fail-on", "never") == 0

    @pytest.mark.parametrize(
        ("module", "limit", "value", "name", "words"),
        [
            (directories, "MAX_DIRECTORIES", 4, "{}/requirements.txt", "more than 4 directories"),
            (directories, "MAX_ENTRIES", 5, "requirements{}.txt", "more than 5 files"),
            (directories, "MAX_FILES", 3, "requirements{}.txt", "requirements3.txt and 5 others"),
            (collect, "Budget", lambda: SimpleNamespace(left=1000), "requirements{}.txt",
             "the total size of the files before it is too large"),
        ],
        ids=["directories", "entries", "files", "bytes"],
    )  # fmt: skip
    def test_files_above_a_limit_are_reported(self, audit, project, monkeypatch, module, limit, value, name, words):
        for number in range(9):
            write(project / name.format(number), "torch\n" * 100)
        assert audit(project) == 0
        monkeypatch.setattr(module, limit, value)
        self.check(audit, project, words)

    def test_unreadable_directory_is_reported(self, audit, project, monkeypatch):
        write(project / "requirements.txt", "torch\n")
        write(project / "closed" / "requirements.txt", "lightning==2.2.5\n")
        scandir = os.scandir

        def refuse(path: str) -> Any:
            if str(path).endswith("closed"):
                raise PermissionError(13, "Permission denied")
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)
        self.check(audit, project, "closed cannot be read: Permission denied")

    def test_link_that_leads_out_is_reported(self, audit: Audit, project: Path) -> None:
        (project / "requirements.txt").symlink_to(project.parent / "secret.txt")
        (project / "requirements").symlink_to(project.parent)
        self.check(audit, project, "requirements.txt is a link that leads out", "requirements is a link that leads")

    def test_setup_that_names_lightning_is_reported(self, audit: Audit, project: Path) -> None:
        write(project / "setup.py", "needed = ['lightning==2.2.5']\nsetup(install_requires=compute(needed))\n")
        for text in ("torch\n", "lightning==2.6.6\n"):
            write(project / "requirements.txt", text)
            self.check(audit, project, "setup.py, line 1, names lightning, and was not read")


def test_links_inside_the_project_are_followed(audit: Audit, project: Path) -> None:
    write(project / "pinned.lock.txt", "lightning==2.2.5\n")
    (project / "requirements.txt").symlink_to("pinned.lock.txt")
    write(project / ".hidden" / "requirements.txt", "lightning==2.3.3\n")
    (project / "shown").symlink_to(".hidden")
    (project / "circle").symlink_to(".")
    (project / "itself").symlink_to("itself")
    (project / "requirements-again.txt").symlink_to("requirements.txt")
    document = audit.json(project)
    assert {one["version"] for one in document["audited"]} == {"2.2.5", "2.3.3"}
    assert document["skipped"] == [] and audit.status == 1


PINNED = "lightning==2.2.5"
MANY = {
    "requirements.txt": f"{PINNED}\n" * 30_000,
    "train.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": [f"!pip install {PINNED}\n"] * 10_000}]}),
    "Dockerfile": "FROM a\n" + f"RUN pip install {PINNED}\n" * 10_000,
    "pyproject.toml": "[project]\ndependencies = [" + f'"{PINNED}", ' * 10_000 + "]\n",
    "environment.yml": "dependencies:\n" + f"- {PINNED}\n" * 10_000,
}


@pytest.mark.parametrize("name", MANY)
def test_equal_requirements_are_counted_once(audit: Audit, project: Path, name: str) -> None:
    file = write(project / name, MANY[name])
    for what in (file, project):
        begun = time.process_time()
        document = audit.json(what)
        assert time.process_time() - begun < 20, "half a minute and more before they were counted once"
        assert audit.status == 1 and len(document["audited"]) == 1


@pytest.mark.parametrize(
    "line", ["lightning==2.{0}.{1}", "lightning>=2.0,!=2.0.{0}.{1}", "lightning>=2\ntorch==1.13.1+cu{0}{1}"]
)
def test_different_requirements_are_limited(audit: Audit, project: Path, line: str) -> None:
    file = write(project / "requirements.txt", "".join(f"{line.format(a, b)}\n" for a in range(50) for b in range(50)))
    document = audit.json(file)
    assert len(document["audited"]) <= collect.MAX_REQUIREMENTS
    assert document["skipped"] and audit.status in (1, 3)


def test_requirements_of_all_files_are_limited(audit: Audit, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_releases, "MAX_AUDITED", 3)
    for number in range(5):
        write(project / f"requirements{number}.txt", "lightning==2.6.6\n")
    document = audit.json(project)
    assert audit.status == 3 and len(document["audited"]) == 3 and "more than 3 requirements" in document["skipped"][0]
