"""In a fork, ``status``, ``audit``, ``strict`` and the start line agree on the remaining patches."""

import importlib
import json
import subprocess
import sys

import pytest

from lightning_patches import patches as catalogue
from lightning_patches.cli import audit
from lightning_patches.cli.audit.audited import audit_installed, audit_requirements
from lightning_patches.cli.audit.formats.report import headline
from lightning_patches.engine import distributions, fingerprints, gate, toggle
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.fork import diffs as _diffs
from lightning_patches.fork import wheel as _fork
from tests.equivalence import boundaries
from tests.support import forks
from tests.support.expectations import part, shows_bug
from tests.support.variants import Variant, environment_of

import _releases  # isort: skip

ALL = toggle.parse("all", catalogue.all_patches())
NOT_AVAILABLE = {
    "resumed-metrics": ("2.0.0", "2.6.6", "plateau-waits-for-validation"),
    "checkpoint-written-once": ("2.6.0", "2.6.6", "own-checkpoint-load"),
    "last-checkpoint-link-relative": ("2.1.0", "2.1.1", "last-checkpoint-without-links"),
}
"""Opt-in patches that do not fit a fork with the default set: first and last release, and the carried patch.

They are in the order of the catalogue."""


def not_available(version):
    return {
        name: other
        for name, (first, last, other) in NOT_AVAILABLE.items()
        if in_ranges(version, (f">={first},<={last}",))
    }


@pytest.fixture
def find(monkeypatch):
    def find(distribution, version, names):
        monkeypatch.syspath_prepend(str(forks.directory_of(distribution, version, names)))
        importlib.invalidate_caches()
        distributions._file_of.cache_clear()
        return distributions.find(_releases.NAMESPACES[distribution])

    yield find
    distributions._file_of.cache_clear()


@pytest.mark.parametrize("everything", [False, True], ids=["default", "all"])
@pytest.mark.parametrize("version", _releases.versions())
def test_only_listed_patches_are_skipped_in_a_fork(find, version, everything):
    names = None if everything else _fork.default_set()
    distribution = _releases.DISTRIBUTIONS[_releases.versions().index(version) % 2]
    namespace = find(distribution, version, names)
    carried = {diff.name for diff in _diffs.selected(version, names)}
    refused = {}
    for patch in catalogue.all_patches():
        made = gate.decide(patch, namespace)
        if patch.name in carried:
            assert made.verdict == "fixed-upstream" and made.reason.endswith("carries this patch in its source"), made
        elif made.verdict in gate.REFUSED:
            refused[patch.name] = made.reason
        if carried.intersection(patch.fixed_by) and in_ranges(version, patch.affected_known):
            assert made.verdict == "fixed-upstream", made
    expected = {} if everything else not_available(version)
    assert set(refused) == set(expected)
    for name, other in expected.items():
        assert f"carries {other} in " in refused[name] and f"--only default,{name}`" in refused[name]


PROGRAM = """
import json, sys
import lightning_patches, {package}, {fabric}
print(json.dumps([entry.as_dict() for entry in lightning_patches.report()]))
"""


@pytest.mark.parametrize(
    ("distribution", "version", "everything", "spec"),
    [
        ("lightning", "2.2.5", False, None),
        ("lightning", "2.2.5", False, "all"),
        ("pytorch-lightning", "2.2.5", True, None),
        ("lightning", "2.6.6", False, None),
        ("lightning", "2.6.6", False, "all"),
        ("pytorch-lightning", "2.6.6", True, "all"),
    ],
)
def test_status_audit_strict_and_start_agree_in_a_fork(tmp_path, distribution, version, everything, spec):
    names = None if everything else _fork.default_set()
    directory = forks.directory_of(distribution, version, names)
    environment = environment_of(Variant(distribution, version, shim=True, directory=directory), toggle=spec)

    def ask(*command, **more):
        done = subprocess.run(
            [sys.executable, *command], env={**environment, **more}, cwd=tmp_path, capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    not_fitting = [] if everything else list(not_available(version))
    wanted_but_refused = not_fitting if spec == "all" else []
    code, stdout, _ = ask("-m", "lightning_patches", "status", "--json")
    status = json.loads(stdout)
    assert code == bool(wanted_but_refused)
    verdicts = {entry["patch"]: entry["verdict"] for entry in status["patches"]}
    assert [name for name, verdict in verdicts.items() if verdict in gate.REFUSED] == not_fitting

    code, stdout, _ = ask("-m", "lightning_patches", "audit", "--json")
    (audited,) = json.loads(stdout)["audited"]
    label = f"{distribution} {audited['version']}"
    assert status["figures"] == {label: audited["figures"]}
    fixes = {bug["name"]: bug["mended"] for bug in audited["bugs"] if bug["cover"] != "none"}
    off = {name for name, verdict in verdicts.items() if verdict == "disabled"}
    assert {name for name, state in fixes.items() if state == "opt-in"} == off
    assert [name for name, state in fixes.items() if state == "no"] == not_fitting
    pending = {name for name, verdict in verdicts.items() if verdict == "pending"}
    assert {name for name, state in fixes.items() if state == "yes"} == {
        patch.name for patch in catalogue.all_patches() if patch.name in pending and not patch.warns
    } - set(audited["excluded"])

    package = _releases.NAMESPACES[distribution]
    program = PROGRAM.format(
        package=f"{package}.pytorch" if package == "lightning" else package,
        fabric="lightning.fabric" if package == "lightning" else "lightning_fabric",
    )
    code, stdout, stderr = ask("-c", program)
    assert code == 0, stderr
    live = {entry["patch"]: entry["verdict"] for entry in json.loads(stdout.splitlines()[-1])}
    assert {name for name, verdict in live.items() if verdict in ("applied", "pending")} == pending
    assert stderr.count("is not applied") == len(wanted_but_refused), stderr

    code, _, stderr = ask("-c", program, LIGHTNING_PATCHES=f"{spec or 'default'},strict")
    assert (code, "PatchError: " in stderr) == ((1, True) if wanted_but_refused else (0, False)), stderr


def pairs():
    for patch in catalogue.all_patches():
        for other in patch.around:
            yield pytest.param(patch, other, id=f"{patch.name} around {other}")


@pytest.mark.equivalence
@pytest.mark.distributed
@pytest.mark.parametrize(("patch", "other"), list(pairs()))
def test_patch_around_a_carried_fix_keeps_both_fixes(find, patch, other):
    """Programs do the same as with the shim alone, which has both fixes."""
    theirs = _diffs.record(other)
    both = [v for v in _releases.versions() if all(v in gate.affected_releases(one) for one in (patch, theirs))]
    overlapping = False
    for version in reversed(both):
        # A fork has another function to trust checkpoints, so programs for that differ.
        rows = [p for p in boundaries.of(patch.name) if boundaries.can_run(p, version)][:1]
        if not other.startswith("trusted-"):
            rows += [p for p in boundaries.of(other) if boundaries.can_run(p, version)][:1]
        distribution = boundaries._distribution(version, False)
        namespace = find(distribution, version, [other])
        assert namespace is not None
        targets = [target.location for target in gate.targets_in(patch, namespace)]
        changed = [fingerprints.source_of(namespace.part_of(one), one).changed_by for one in targets]
        if not any(changed) or not rows:
            continue
        overlapping = True
        fork = forks.directory_of(distribution, version, [other])
        for row in rows:
            shim = boundaries.run(row, Variant(distribution, version, shim=True), f"none,{patch.name},{other}")
            on_fork = Variant(distribution, version, shim=True, directory=fork)
            mixed = boundaries.run(row, on_fork, f"none,{patch.name}")
            seen, expected = (boundaries.view(part(row.compare), result) for result in (mixed, shim))
            assert boundaries.same(seen, expected), f"{version}: {boundaries.short(mixed)}"
            assert shows_bug(row, mixed) == shows_bug(row, shim), version
        break
    assert overlapping, "there is no release in which both change the same function"


def test_audit_counts_the_bug_of_a_patch_that_a_fork_skips(find):
    find("lightning", "2.6.6", _fork.default_set())
    (audited,) = [one for one in audit_installed(ALL) if one.distribution == "lightning"]
    (bug,) = [bug for bug in audited.bugs if bug.record.name == "checkpoint-written-once"]
    assert (bug.fixed, audit.fails(bug, "uncovered")) == ("no", True)
    default = toggle.parse("default", catalogue.all_patches())
    (audited,) = [one for one in audit_installed(default) if one.distribution == "lightning"]
    (bug,) = [bug for bug in audited.bugs if bug.record.name == "checkpoint-written-once"]
    assert (bug.fixed, audit.fails(bug, "uncovered")) == ("no", False)
    assert "1 not fixed" in headline(audited)


@pytest.mark.parametrize(
    ("distribution", "version", "everything"), [("lightning", "2.2.5", False), ("pytorch-lightning", "2.6.6", True)]
)
def test_audit_of_the_version_of_a_fork_counts_as_audit_of_its_code(find, distribution, version, everything):
    names = None if everything else _fork.default_set()
    find(distribution, version, names)
    selection = toggle.parse("default", catalogue.all_patches())
    (installed,) = [one for one in audit_installed(selection) if one.distribution == distribution]
    (asked,) = audit_requirements([f"{distribution}=={_fork.local_version(version, names)}"], selection)
    absent = {name for name in NOT_AVAILABLE if not everything}
    by_code = {bug.record.name for bug in installed.bugs} | set(installed.excluded)
    assert {bug.record.name for bug in asked.bugs} - absent == by_code - absent
    assert any(note.startswith("the wheel contains ") for note in asked.notes)


def test_audit_of_a_fork_with_a_selection_says_where_to_look():
    (asked,) = audit_requirements(["lightning==2.2.5+patches.3.only.8ab3c07d"], ALL)
    assert any("run `audit` in an environment with this wheel" in note for note in asked.notes)
