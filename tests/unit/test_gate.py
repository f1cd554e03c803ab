"""Every verdict of the gate, which compares first the version, then the code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from lightning_patches.engine import gate, hunks
from lightning_patches.engine.gate import Decision, decide, targets_in
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.patch import Patch, Target
from tests.unit.fakes import (
    AFFECTED,
    FIXED,
    FUNCTION,
    METHOD,
    RELEASES,
    World,
    make_device,
    make_gigabyte,
    times_ten,
    toy,
)

EDITED = AFFECTED.replace("value * scale", "value * scale * 1")
TOY = toy()


def decision(world: World, version: str, source: str = AFFECTED, patch: Patch = TOY, **how: Any) -> Decision:
    world.know(patch, releases=how.pop("releases", RELEASES))
    return decide(patch, world.install(version, source=source, **how))


EDIT_ELSEWHERE = AFFECTED.replace('"other"', '"edited"')


@pytest.mark.parametrize(
    ("versions", "source", "verdict", "reason"),
    [
        ("2.2.0,2.2.5,2.3.3", AFFECTED, "pending", ""),
        ("2.1.0", AFFECTED, "not-affected", "lightning 2.1.0 does not have this bug"),
        ("1.7.7,1.5.0,0.8.1", AFFECTED, "not-known", "was not checked for this bug, and may have it"),
        ("2.4.0,2.5.0,2.4.0.post1,2.4.1.dev0,9.0.0", FIXED, "fixed-upstream", "has the official fix (since 2.4.0)"),
        (",unknown,main,2.x", AFFECTED, "drifted", "has an invalid version"),
        # The local label is ignored, and a prerelease counts as its release.
        ("2.2.5+cu118,2.3.3+vendor.7,2.3.0rc1,2.3.3.dev20240101,2.2.0.dev0", AFFECTED, "pending", ""),
        ("2.2.5+cu118,2.3.3+vendor.7", EDITED, "drifted", ""),
        # The code decides for versions in development, and for those that upstream's master had before the fix.
        ("2.4.0.dev0,2.4.0rc1,2.4.0.dev0+g1234567,2.6.2,2.6.3,2.6.2+git", AFFECTED, "pending", ""),
        ("2.4.0.dev0,2.4.0rc1,2.4.0.dev0+g1234567,2.6.2,2.6.3,2.6.2+git", FIXED, "fixed-upstream", ""),
        ("2.4.0.dev0,2.4.0rc1,2.4.0.dev0+g1234567", EDITED, "drifted", ""),
        # A vendor's changes
        ("2.3.3", EDITED, "drifted", f"{FUNCTION} in lightning 2.3.3 is not the code of any known release; left"),
        ("2.3.3", EDIT_ELSEWHERE, "pending", ""),
        ("2.3.3", "# backported\n" + FIXED, "fixed-upstream", f"the code of {FUNCTION} in lightning 2.3.3 already has"),
        ("2.3.3", AFFECTED.replace("def compute", "def g"), "drifted",
         f"{FUNCTION} in lightning 2.3.3 is missing; left"),
    ],
)  # fmt: skip
def test_version_and_code_decide(world: World, versions: str, source: str, verdict: str, reason: str) -> None:
    for version in versions.split(","):
        made = decision(world, version, source)
        assert made.verdict == verdict and reason in made.reason, (version, made)


@pytest.mark.parametrize(
    ("version", "ranges", "unknown"),
    [
        ("1.9.5", (">=2.0.0,<2.1.0",), True),
        ("1.9.5", (">=2.1.0,<2.4.0",), False),
        ("1.8.6", (">=1.9.0,<2.1.0",), True),
        ("1.7.7", (">=2.1.0,<2.4.0",), True),
        ("1.7.7", (">=1.5.0,<1.6.0",), False),
        ("2.0.0", (">=2.1.0,<2.4.0",), False),
    ],
)
def test_old_release_is_unknown_unless_it_was_checked(version: str, ranges: tuple[str, ...], unknown: bool) -> None:
    assert gate.is_unknown(version, ranges) is unknown


@pytest.mark.parametrize(
    ("version", "affected", "reason"),
    [
        ("2.5.1", (">=2.2.0,<=2.5.0",), "newer than the releases this patch was tested on"),
        ("1.8.0", (">=1.5.0,<1.8.0",), "does not need it: this patch is for 1.5 to 1.7"),
    ],
)
def test_release_outside_of_the_tested_ones_is_not_affected(world, version, affected, reason):
    made = decision(world, version, patch=toy(fixed_in=None, affected=affected))
    assert made.verdict == "not-affected" and reason in made.reason


def test_backport_is_recognized_in_the_witness(world: World) -> None:
    patch = toy("pytorch.subject:other", witnesses=(METHOD,))  # the fix did not change the target
    assert decision(world, "2.3.3", FIXED, patch).verdict == "fixed-upstream"
    assert decision(world, "2.3.3", AFFECTED, patch).verdict == "pending"


def test_source_with_the_diff_is_fixed(world: World) -> None:
    marked = AFFECTED.replace("    return value", "    # lightning-patches: toy\n    return 1 * value")
    assert decision(world, "2.3.3", marked) == Decision(
        "fixed-upstream", "lightning 2.3.3 carries this patch in its source"
    )
    assert decision(world, "2.3.3", marked, toy(name="another")).verdict == "drifted"


CARRIED = """\
Description: The result is a text.
---
+++ pytorch/subject.py
@@ compute
-    return value * scale
+    # lightning-patches: carried
+    return str(value * scale)
"""
FORKED = AFFECTED.replace("return value * scale", "# lightning-patches: carried\n    return str(value * scale)")


@pytest.fixture
def fork(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A fork that carries the diff of a patch called ``carried``."""
    directory = world.root / "diffs"
    directory.mkdir()
    (directory / "carried.patch").write_text(CARRIED)
    monkeypatch.setattr(hunks, "DIFFS", directory)
    hunks._changes.cache_clear()
    yield world
    hunks._changes.cache_clear()


@pytest.mark.parametrize("namespace", ["lightning", "pytorch_lightning"])
def test_patch_applies_in_a_file_that_a_fork_changed(fork: World, namespace: str) -> None:
    assert decision(fork, "2.3.3+patches.1", FORKED, toy(METHOD), namespace=namespace).verdict == "pending"


@pytest.mark.parametrize("order", [{"below": ("carried",)}, {"around": ("carried",)}])
def test_patch_applies_around_a_function_that_a_fork_changed(fork: World, order: dict[str, Any]) -> None:
    assert decision(fork, "2.3.3+patches.1", FORKED, toy(**order)).verdict == "pending"


def test_patch_is_drifted_when_it_could_undo_the_fix_of_a_fork(fork: World) -> None:
    assert decision(fork, "2.3.3+patches.1", FORKED) == Decision(
        "drifted",
        f"lightning 2.3.3+patches.1 carries carried in {FUNCTION}, which this patch also changes; build a fork with "
        "both: `lightning-patches fork RELEASE --only default,toy`",
    )


def test_witness_that_a_fork_changed_is_compared_without_the_diff(fork: World) -> None:
    patch = toy(METHOD, witnesses=(FUNCTION,))
    assert decision(fork, "2.3.3+patches.1", FORKED, patch).verdict == "pending"


def test_warning_patch_is_skipped_when_a_fork_carries_the_fix(fork: World) -> None:
    patch = toy(METHOD, name="warn-toy", fixed_by=("carried",))
    assert decision(fork, "2.3.3+patches.1", FORKED, patch) == Decision(
        "fixed-upstream", "lightning 2.3.3+patches.1 carries carried in its source"
    )


@pytest.mark.parametrize("change", ["str(value)", "str(value * scale)  # edited", "str(value * scale"])
def test_fork_of_another_version_of_this_package_is_drifted(fork: World, change: str) -> None:
    made = decision(fork, "2.3.3+patches.1", FORKED.replace("str(value * scale)", change), toy(around=("carried",)))
    assert made.verdict == "drifted"
    assert made.reason.endswith("another lightning-patches built this fork: build it again")


def test_missing_module_is_drifted(world: World) -> None:
    world.know(toy())
    namespace = world.install("2.3.3")
    (world.root / "lightning" / "pytorch" / "subject.py").unlink()
    assert decide(toy(), namespace).reason == f"{FUNCTION} in lightning 2.3.3 is missing; left unchanged"


def test_added_target_is_applied(world: World) -> None:
    patch = toy(Target("pytorch.subject:Base.added", times_ten, adds=True))
    assert decision(world, "2.3.3", patch=patch).verdict == "pending"
    present = AFFECTED.replace("class Child", "    def added(self):\n        return 1\n\n\nclass Child")
    assert decision(world, "2.3.3", present, patch).verdict == "drifted"
    made = decision(world, "2.3.3", present, patch, releases={"2.3.3": AFFECTED, "2.4.0": present})
    assert made.verdict == "fixed-upstream"


def test_missing_optional_part_is_not_affected(world: World) -> None:
    made = decision(world, "2.3.3", namespace="pytorch_lightning", parts=["fabric"])
    assert made.verdict == "not-affected"
    assert "without the package" in made.reason


def test_patch_is_skipped_when_one_of_its_parts_is_fixed(world: World) -> None:
    patch = toy(FUNCTION, "fabric.subject:compute")
    world.install("2.3.3", "pytorch_lightning", parts=["pytorch"])
    made = decision(world, "2.4.0", FIXED, patch, namespace="pytorch_lightning", parts=["fabric"])
    assert made.verdict == "fixed-upstream"  # a patch needs all of its parts
    assert "lightning-fabric 2.4.0" in made.reason


def test_targets_have_separate_ranges(world: World) -> None:
    late = Target("pytorch.subject:other", times_ten, since="2.3.0")
    early = Target(METHOD, times_ten, before="2.3.0")
    always = Target(FUNCTION, times_ten)
    patch = toy(always, late, early)
    for version, expected in {
        "2.2.5": (always, early),
        "2.3.3": (always, late),
        "2.2.5+cu118": (always, early),
    }.items():
        world.know(patch)
        namespace = world.install(version)
        assert decide(patch, namespace).verdict == "pending", version
        assert targets_in(patch, namespace) == expected, version


def test_code_of_a_target_outside_its_range_is_ignored(world: World) -> None:
    patch = toy(Target(FUNCTION, times_ten, since="2.3.0"), METHOD)
    assert decision(world, "2.2.5", EDITED, patch).verdict == "pending"
    assert decision(world, "2.3.3", EDITED, patch).verdict == "drifted"


@pytest.mark.parametrize(
    ("version", "ranges", "expected"),
    [
        ("2.3.3", (">=2.1.0,<2.4.0",), True),
        ("2.4.0", (">=2.1.0,<2.4.0",), False),
        ("2.4.0.dev0", (">=2.1.0,<2.4.0",), False),
        ("2.4.0.dev0", (">=2.4.0",), True),
        ("2.0.9.post0", ("<=2.0.9",), False),
        ("2.0.9.post0", ("<2.1.0",), True),
        ("2.5.1", ("<2.1.0", ">=2.5.0,<2.6.0"), True),
        ("2.2.0", ("<2.1.0", ">=2.5.0,<2.6.0"), False),
        ("2.2.5+cu118", ("<=2.2.5",), True),
        ("2.2.5", (), False),
    ],
)
def test_version_is_compared_with_ranges(version: str, ranges: tuple[str, ...], expected: bool) -> None:
    assert in_ranges(version, ranges) is expected


def make_nested(path: Path) -> None:
    path.write_text(f"{AFFECTED}\nnested = {'-' * 10_000}1\n")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "it is not a regular file"),
        (make_device, "it is not a regular file"),
        (make_gigabyte, "it is larger than 192 KB"),
        (make_nested, "it is nested too deeply"),
    ],
)
def test_source_that_cannot_be_read_is_drifted(world: World, make: Callable[[Path], None], why: str) -> None:
    world.know(TOY)
    installed = world.install("2.3.3")
    source = world.root / "lightning" / "pytorch" / "subject.py"
    source.unlink()
    make(source)
    assert decide(TOY, installed) == Decision("drifted", f"the source of {FUNCTION} cannot be read: {why}")
