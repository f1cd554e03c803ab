"""``lightning-patches audit``: by the numbers of releases, and by what is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lightning_patches import cli, gate
from lightning_patches.catalog import all_patches
from lightning_patches.known_bugs import KNOWN_BUGS
from lightning_patches.patch import GROUPS
from tests.support.arms import ROOT, Arm, environment_of

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


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.name)
def test_records(bug: Any) -> None:
    assert bug.name not in {patch.name for patch in all_patches()}
    assert bug.group in GROUPS
    assert bug.title and bug.harm and bug.why_not
    assert not gate.in_ranges(bug.move_to, bug.affected)
    assert bug.fixed_in is None or not gate.in_ranges(bug.fixed_in, bug.affected)


def test_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    status, (one,) = audit(capsys, "--requirement", "lightning==2.2.5")
    mending = [patch for patch in all_patches() if not patch.warns_of]
    expected = {patch.name for patch in mending if gate.in_ranges("2.2.5", patch.affected)}
    assert names(one) == expected | {"mid-epoch-resume", "lightning-app"}
    assert status == 1  # two bugs that no patch mends
    bugs = {bug["name"]: bug for bug in one["bugs"]}
    assert bugs[DEVICE]["covered"] and bugs[DEVICE]["cover"] == "default"
    assert bugs[DEVICE]["drop_at"] == bugs[DEVICE]["fixed_in"] == "2.4.0"
    assert bugs["mid-epoch-resume"]["cover"] == "none" and bugs["mid-epoch-resume"]["move_to"] == "2.5.1"
    assert any("also installs pytorch-lightning" in note for note in one["notes"])


@pytest.mark.parametrize(("version", "has"), [("2.0.0", True), ("2.4.0", True), ("2.5.0", False), ("2.6.6", False)])
def test_resume_in_the_middle_of_an_epoch(capsys: pytest.CaptureFixture[str], version: str, has: bool) -> None:
    _, (one,) = audit(capsys, "--requirement", f"pytorch-lightning=={version}")
    assert ("mid-epoch-resume" in names(one)) is has
    assert "lightning-app" not in names(one)


def test_exit_status(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ("--requirement", "pytorch-lightning==2.6.6")
    assert audit(capsys, *spec)[0] == 0
    assert audit(capsys, *spec, "--fail-on", "any")[0] == 1
    old = ("--requirement", "pytorch-lightning==2.4.0")
    assert audit(capsys, *old)[0] == 1
    assert audit(capsys, *old, "--fail-on", "never")[0] == 0
    status, (one,) = audit(capsys, *old, "--ignore", "mid-epoch-resume")
    assert status == 0 and "mid-epoch-resume" not in names(one)
    monkeypatch.setenv("LIGHTNING_PATCHES", "off")
    status, (one,) = audit(capsys, *spec)
    assert status == 1
    assert not any(bug["covered"] for bug in one["bugs"])
    assert "LIGHTNING_PATCHES=off leaves it out" in {bug["reason"] for bug in one["bugs"]}


def test_opt_in_patches(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    optional = [patch for patch in all_patches() if not patch.default]
    if not optional:
        pytest.skip("the catalogue has no opt-in patch")
    patch = optional[0]
    version = sorted(gate.affected_releases(patch))[0]
    ignored = [word for bug in KNOWN_BUGS for word in ("--ignore", bug.name)]
    spec = ("--requirement", f"pytorch-lightning=={version}", *ignored)
    status, (one,) = audit(capsys, *spec)
    bug = next(bug for bug in one["bugs"] if bug["name"] == patch.name)
    assert (status, bug["cover"], bug["covered"]) == (0, "opt-in", False)
    assert f"default,{patch.name}" in bug["reason"]
    assert audit(capsys, *spec, "--fail-on", "opt-in")[0] == 1
    monkeypatch.setenv("LIGHTNING_PATCHES", "all")
    assert audit(capsys, *spec, "--fail-on", "opt-in")[0] == 0


@pytest.mark.parametrize("version", ["2.6.2", "2.6.3"])
def test_compromised_releases(capsys: pytest.CaptureFixture[str], version: str) -> None:
    status, (one,) = audit(capsys, "--requirement", f"lightning=={version}")
    assert status == 1
    assert [bug["name"] for bug in one["bugs"]] == ["compromised-release"]
    assert one["bugs"][0]["advisories"] == ["GHSA-w37p-236h-pfx3"]


def test_ranges_and_numbers_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    _, (one,) = audit(capsys, "--requirement", "Pytorch_Lightning[extra]~=2.3.0")
    assert (one["distribution"], one["version"]) == ("pytorch-lightning", "2.3.3")
    assert one["notes"] == ["not pinned; 2.3.3 is the newest known release that matches"]
    _, (one,) = audit(capsys, "--requirement", "pytorch-lightning==2.2.77")
    assert DEVICE in names(one) and "not a known release" in one["notes"][0]
    _, (one,) = audit(capsys, "--requirement", "pytorch-lightning>=3")
    assert one["version"] is None and one["bugs"] == []


def test_only_fabric(capsys: pytest.CaptureFixture[str]) -> None:
    _, (one,) = audit(capsys, "--requirement", "lightning-fabric==2.2.5")
    assert "fabric-submodule-sync" in names(one) and DEVICE not in names(one)


def test_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
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
    (tmp_path / "none.txt").write_text("torch\n")
    assert audit(capsys, "-r", str(tmp_path / "none.txt")) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--requirement", "torch==2.6"], "not a requirement of lightning"),
        (["--requirement", "lightning 2.2.5"], "not a requirement such as"),
        (["-r", "no_such_file.txt"], "cannot be read"),
        (["--ignore", "nothing-of-that-name"], "there is no bug"),
    ],
)
def test_what_cannot_be_audited(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert cli.main(["audit", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_environment() -> None:
    """What is installed is told by its code, without importing it."""
    variables = environment_of(Arm("lightning", "2.3.3"))
    program = (
        "import sys; from lightning_patches.cli import main; status = main(['audit']); "
        "print(status, sorted({'torch', 'lightning'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**variables, "_LIGHTNING_PATCHES_IMPORT_ONLY": "1"}, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0].startswith("lightning 2.3.3 has "), done
    assert any(line.startswith(DEVICE) and " yes " in line for line in lines)
    assert any(line.startswith("mid-epoch-resume: no patch") and "Move to 2.5.1." in line for line in lines)
    assert lines[-1] == "1 []"
