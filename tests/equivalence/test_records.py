"""Every record is well formed, and names the releases that have the bug, by version and by code."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from lightning_patches.engine import distributions, fingerprints, gate, patcher
from lightning_patches.engine.distributions import Namespace, Part
from lightning_patches.engine.fingerprints import known_releases, older_releases
from lightning_patches.engine.ranges import in_ranges
from lightning_patches.engine.toggle import DEFAULT_WORDS, FLAG_WORDS, NOTHING_WORDS, parse
from lightning_patches.known.unpatched import UNPATCHED
from lightning_patches.patch import GROUPS, Patch
from lightning_patches.patches import all_patches, find, index
from tests.equivalence import boundaries
from tests.support import expectations  # which puts scripts/ on the path
from tests.support.run import check
from tests.unit.fakes import ROOT

import _patch_index  # isort: skip
import _releases  # isort: skip

PATCHES = tuple(patch for patch in all_patches() if patch.affected_known)  # leaves out patches for 1.5 to 1.7 alone
HOUSE = ROOT / "lightning_patches" / "patches"
FILES = sorted(path for path in HOUSE.glob("*/*.py") if path.name != "__init__.py")
each_patch = pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Namespace]:
    """Every release of both distributions, with the files that the patches compare."""
    directory = tmp_path_factory.mktemp("releases")
    modules = {location.partition(":")[0] for patch in PATCHES for location in patch.locations}
    return {
        (distribution, release): _extract(distribution, release, directory, modules)
        for distribution in _releases.DISTRIBUTIONS
        for release in known_releases()
    }


def _extract(distribution: str, release: str, directory: Path, modules: set[str]) -> Namespace:
    name = _releases.NAMESPACES[distribution]
    root = directory / f"{distribution}-{release}"
    with zipfile.ZipFile(_releases.wheel(distribution, release)) as archive:
        shipped = set(archive.namelist())
        for module in modules:
            if module.partition(".")[0] not in distributions.PARTS[name]:
                continue
            stem = distributions.module_name(name, module).replace(".", "/")
            for file in (f"{stem}.py", f"{stem}/__init__.py"):
                if file in shipped:
                    archive.extract(file, root)
    parts = {}
    for part, package in distributions.PARTS[name].items():
        if f"{package.replace('.', '/')}/__init__.py" not in shipped:
            continue
        parts[part] = Part(name, part, package, release, str(root.joinpath(*package.split("."))), distribution)
    return Namespace(name, parts)


def affected(patch: Patch) -> list[str]:
    return [release for release in known_releases() if release in gate.affected_releases(patch)]


def test_names_are_unique() -> None:
    every = Counter(patch.name for patch in PATCHES)
    assert [name for name, count in every.items() if count > 1] == []


def test_catalogue_finds_by_name_and_number() -> None:
    for patch in PATCHES:
        assert find(patch.name) == (patch,)
        for number in patch.numbers:
            assert patch in find(str(number))
            assert patch in find(f"#{number}")
    assert find("0") == find("nothing") == ()


@each_patch
def test_patch_has_a_valid_name(patch: Patch) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", patch.name), "kebab-case, two words or more"
    assert patch.name not in {*GROUPS, *DEFAULT_WORDS, *NOTHING_WORDS, *FLAG_WORDS, "all"}
    assert parse(patch.name, PATCHES).names == {patch.name, *(other.name for other in PATCHES if other.for_import)}
    assert patch.name not in parse(f"all,-{patch.name}", PATCHES).names


@each_patch
def test_patch_has_complete_texts(patch: Patch) -> None:
    assert patch.title
    assert len(patch.title) <= 90, "one line of a table"
    assert not patch.title.endswith(".")
    assert patch.impact.summary.endswith(".")
    if patch.group in ("crash", "hang"):
        assert patch.impact.symptoms, "what will people search for?"
    for symptom in patch.impact.symptoms:
        assert len(symptom) >= 8, "too short to tell this bug from others"
    assert patch.group in GROUPS


def test_names_and_titles_are_the_same_without_docstrings() -> None:
    """``python -OO`` removes docstrings, from which titles come."""
    code = "from lightning_patches import patches; print(ascii([patch[:2] for patch in patches.all_patches()]))"
    environment = {**os.environ, "_LIGHTNING_PATCHES_IMPORT_ONLY": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-OO", "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == ascii([patch[:2] for patch in all_patches()]), done.stderr


@each_patch
def test_patch_has_a_valid_history(patch: Patch) -> None:
    has_reference = any(
        row.like is not None or row.compare_like or row.like_variables for row in boundaries.of(patch.name)
    )
    assert patch.numbers or has_reference or patch.warns, "issue, pull request, or a row with the recommended usage"
    if patch.upstream.commit:
        assert re.fullmatch(r"[0-9a-f]{7,40}", patch.upstream.commit)
    for test in patch.upstream.tests:
        assert re.fullmatch(r"tests/[\w/]+\.py(::\w+)*", test), test
    if patch.fixed_in is None and not patch.warns:
        assert patch.upstream.pull_requests or has_reference, "no release is fixed: what is the patch measured by?"


@pytest.mark.parametrize("patch", all_patches(), ids=lambda patch: patch.name)
def test_opt_in_patch_names_its_users(patch: Patch) -> None:
    """`status`, `show` and the page put this clause into their sentences. A default patch has none."""
    assert patch.kind != "opt-in" or re.fullmatch(r"users who [^\n]*[^.\s]", patch.opt_in), (
        f"opt_in follows 'Opt-in, for ': write 'users who ...' without a full stop, not {patch.opt_in!r}"
    )
    assert patch.kind == "opt-in" or not (patch.opt_in or patch.signs)
    for name in (name for sign in patch.signs for name in sign.split()):
        assert name.lstrip("-").isidentifier(), name


@pytest.mark.parametrize("patch", [p for p in PATCHES if p.warns], ids=lambda patch: patch.name)
def test_warning_patch_has_a_valid_record(patch: Patch) -> None:
    """It has the releases and words of the bug that it warns of."""
    bugs = [bug for bug in UNPATCHED if patch.name == f"warn-{bug.name}"]
    if not bugs:  # warns of removed hooks, or of bugs that no release fixed or on which programs rely
        return
    (bug,) = bugs
    assert (patch.affected, patch.fixed_in, patch.group) == (bug.affected, bug.fixed_in, bug.group)
    assert patch.impact.summary == bug.impact.summary
    assert set(patch.numbers) == set(bug.numbers)


@each_patch
def test_patch_has_valid_ranges(patch: Patch) -> None:
    """Ranges parse, each covers a release, and the fix is the first release after them."""
    known = list(known_releases())
    for text in patch.affected_known:
        assert any(in_ranges(release, (text,)) for release in known), f"{text} covers no release"
    last = known.index(affected(patch)[-1])
    if patch.fixed_in is not None:
        assert known[last + 1] == patch.fixed_in
        assert all(release not in gate.affected_releases(patch) for release in known[last + 1 :])


@each_patch
def test_patch_has_valid_targets(patch: Patch) -> None:
    locations = [(target.location, target.since) for target in patch.targets]
    assert len(set(locations)) == len(locations)
    for location in patch.locations:
        assert re.fullmatch(r"(pytorch|fabric|lite)(\.\w+)*:\w+(\.\w+)*", location), location
    for target in patch.targets:
        ranges = [f">={target.since}"] if target.since else []
        ranges += [f"<{target.before}"] if target.before else []
        releases = [r for r in (*older_releases(), *known_releases()) if in_ranges(r, patch.affected)]
        assert any(in_ranges(release, (",".join(ranges),)) for release in releases), target.location


@cache
def imported_by_builders() -> dict[str, list[str]]:
    """Return the modules that the builders of each patch import, tested in one process."""
    program = """
import json, sys
from lightning_patches.patches import all_patches
imported = {}
for patch in all_patches():
    before = set(sys.modules)
    for target in patch.targets:
        def original(*args, **kwargs):
            raise AssertionError("the original was called while building")
        for namespace in ("lightning", "pytorch_lightning"):
            built = target.build(None if target.adds else original, namespace)
            assert type(built).__name__ == "function" and built is not original, target.location
            assert {path.partition(".")[0] for path in target.stock} <= {*built.__code__.co_varnames}, target.location
    imported[patch.name] = sorted({name.partition(".")[0] for name in set(sys.modules) - before})
print(json.dumps(imported))
"""
    found: dict[str, list[str]] = json.loads(check(program, _LIGHTNING_PATCHES_IMPORT_ONLY="1"))
    return found


@each_patch
def test_builders_import_neither_lightning_nor_torch(patch: Patch) -> None:
    """Builders run inside the user's import, so their imports would come too early."""
    unwanted = {"torch", "numpy", "wrapt", "packaging", *distributions.ROOT_PACKAGES}
    assert not unwanted & set(imported_by_builders()[patch.name])


@pytest.mark.parametrize("distribution", _releases.DISTRIBUTIONS)
@each_patch
def test_every_release_gets_the_right_decision(patch, distribution, releases):
    """In the range the verdict is "pending"; outside it names the reason."""
    known = list(known_releases())
    for release in known:
        decision = gate.decide(patch, releases[distribution, release])
        where = f"{distribution} {release}: {decision}"
        if release in gate.affected_releases(patch):
            assert decision.verdict == "pending", where
            assert gate.targets_in(patch, releases[distribution, release]), f"{where}, but there is no target"
        elif patch.fixed_in is not None and known.index(release) >= known.index(patch.fixed_in):
            assert decision.verdict == "fixed-upstream", where
        else:
            is_there = any(releases[distribution, release].part_of(location) for location in patch.locations)
            is_unknown = is_there and gate.is_unknown(release, patch.affected)
            assert decision.verdict == ("not-known" if is_unknown else "not-affected"), where


@pytest.mark.parametrize("distribution", _releases.DISTRIBUTIONS)
@pytest.mark.parametrize(
    "patch",
    # The official fix of scheduler-types changes no function. Together with it, the patch has no effect.
    [p for p in PATCHES if p.fixed_in is not None and p.name != "scheduler-types"],
    ids=lambda patch: patch.name,
)
def test_backport_is_recognized_by_its_code(patch, distribution, releases):
    """The fixed release under an affected number, as a vendor might ship it, and under no telling number, as a
    development version on the way to the fix has it."""
    assert patch.fixed_in is not None
    fixed = releases[distribution, patch.fixed_in]
    for number in (affected(patch)[-1], f"{affected(patch)[-1]}+vendor.1", f"{patch.fixed_in}.dev0"):
        decision = gate.decide(patch, _renumbered(fixed, number))
        assert decision.verdict in ("fixed-upstream", "drifted"), f"{patch.fixed_in} as {number}: {decision}"
    under_way = _renumbered(releases[distribution, affected(patch)[-1]], f"{patch.fixed_in}.dev0")
    assert gate.decide(patch, under_way).verdict == "pending"


def _renumbered(namespace: Namespace, version: str) -> Namespace:
    parts = {
        name: Part(p.namespace, p.name, p.package, version, p.directory, p.distribution)
        for name, p in namespace.parts.items()
    }
    return Namespace(namespace.name, parts)


@pytest.mark.parametrize("distribution", _releases.DISTRIBUTIONS)
@each_patch
def test_targets_exist_in_every_affected_release(patch, distribution, releases):
    for release in affected(patch):
        namespace = releases[distribution, release]
        for target in gate.targets_in(patch, namespace):
            part = namespace.part_of(target.location)
            assert part is not None
            exists = release not in fingerprints._with_function(target.location, fingerprints.ABSENT)
            assert exists != target.adds, f"{distribution} {release}: {target.location}"


def test_attribute_is_added_by_one_patch_only() -> None:
    """If two patches added the same attribute, undoing one would remove that of the other."""
    brought = Counter(target.location for patch in PATCHES for target in patch.targets if target.adds)
    assert [location for location, count in brought.items() if count > 1] == []


def test_patcher_keeps_the_order_of_the_catalogue() -> None:
    assert patcher.Patcher(PATCHES).catalogue == PATCHES


SELECTS = ("name", "numbers", "group", "default", "for_import", "changes_results")


def test_index_agrees_with_the_records(releases: dict[tuple[str, str], Namespace]) -> None:
    assert _patch_index.records() == list(index()), "scripts/renew"
    for record, patch in zip(index(), all_patches()):
        for asked in (*SELECTS, "affected", "fixed_in", "locations", "needs", "is_counted"):
            assert getattr(record, asked) == getattr(patch, asked), f"{patch.name}: scripts/renew"
        for namespace in (found for (_, release), found in releases.items() if release in ("2.0.0", "2.2.5", "2.6.6")):
            alone = [namespace._replace(parts={part.name: part}) for part in namespace.parts.values()]
            for installed in (namespace, *alone):
                assert gate.decide(record, installed) == gate.decide(patch, installed), patch.name


def test_files_about_a_patch_have_its_name() -> None:
    """Names of a patch's program and tests start with the patch's name."""
    folder = ROOT / "tests" / "patches"
    tests = {path: path.stem.removeprefix("test_") for path in folder.glob("*/test_*.py")}
    tests |= {path: path.stem for path in expectations.tables()}
    patches = {patch.name.replace("-", "_"): patch for patch in all_patches()}
    assert set(patches) <= set(tests.values())
    for path, name in tests.items():
        assert any(f"{name}_".startswith(f"{own}_") for own in patches), path
    for name, patch in patches.items():
        assert patch.warns or list(folder.glob(f"*/{name}.py")), name


def test_patches_with_a_shared_target_declare_their_order() -> None:
    """Otherwise the order would depend on their names."""
    records = {patch.name: patch for patch in PATCHES}

    def below(name: str) -> set[str]:
        return set(records[name].after).union(*map(below, records[name].after))

    on: dict[str, dict[str, None]] = {}
    for patch in PATCHES:
        for target in patch.targets:
            on.setdefault(target.location, {})[patch.name] = None
    undeclared = [
        (location, one, other)
        for location, names in on.items()
        for one, other in itertools.combinations(names, 2)
        if one not in below(other) and {*affected(records[one])} & {*affected(records[other])}
    ]
    assert undeclared == []


def test_around_names_only_patches_that_are_applied_later() -> None:
    order = [patch.name for patch in all_patches()]
    for patch in all_patches():
        for other in patch.around:
            assert order.index(other) > order.index(patch.name), (patch.name, other)
            assert other not in patch.below


def test_fixed_by_names_the_patches_of_the_same_issue() -> None:
    """In a fork with one of these patches, the warning patch is skipped."""
    left = {  # these warn of more cases than the patch with the same issue fixes
        "warn-best-checkpoint-left": {"monitored-checkpoint-first"},
        "warn-last-checkpoint-old": {"last-checkpoint-newest"},
        "warn-resumed-run": {"mid-epoch-resume", "validation-on-resume"},
        "warn-unfrozen-after-ddp": {"ddp-with-unfrozen"},
    }
    for patch in all_patches():
        if not patch.numbers:  # nothing was reported upstream
            assert set(patch.fixed_by) <= set(patch.after), patch.name
            continue
        others = {other.name for other in all_patches() if not other.warns and set(other.numbers) & set(patch.numbers)}
        assert set(patch.fixed_by) == (others - left.get(patch.name, set()) if patch.warns else set()), patch.name


def test_layers_have_the_order_of_the_records() -> None:
    """The names and the order of the files have no influence."""
    ordered = [patch.name for patch in PATCHES]
    for order in (reversed(PATCHES), sorted(PATCHES, key=lambda patch: patch.title)):
        assert [patch.name for patch in _patch_index.layered(order)] == ordered


def test_impossible_layers_are_refused() -> None:
    one, other = PATCHES[0]._replace(name="one", after=()), PATCHES[0]._replace(name="other", after=("one",))
    assert [patch.name for patch in _patch_index.layered((other, one))] == ["one", "other"]
    with pytest.raises(ValueError, match=r"one another: \['one', 'other'\]"):
        _patch_index.layered((one._replace(after=("other",)), other))
    with pytest.raises(ValueError, match="other must come after one, which does not exist"):
        _patch_index.layered((other,))
    with pytest.raises(ValueError, match=r"share a name: \['one'\]"):
        _patch_index.layered((one, one))
