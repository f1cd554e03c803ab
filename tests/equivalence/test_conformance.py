"""Every patch passes the conformance checks in its oldest and newest affected release of both distributions.

``conformance_program.py`` has the checks. One process checks all patches of a release.
"""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.engine import gate
from lightning_patches.engine.fingerprints import known_releases
from lightning_patches.patch import Patch
from lightning_patches.patches import all_patches
from tests.support import variants
from tests.support.run import check, python
from tests.unit.fakes import AFFECTED, write_lightning

PATCHES = tuple(patch for patch in all_patches() if patch.affected_known)
PROGRAM = Path(__file__).with_name("conformance_program.py")


def affected(patch: Patch, distribution: str) -> list[str]:
    """The releases in which a patch can be checked, oldest first."""
    releases = [release for release in known_releases() if release in gate.affected_releases(patch)]
    # `lightning` up to 2.0 imports the whole App with all its dependencies; its code is that of `pytorch-lightning`.
    return [r for r in releases if not (distribution == "lightning" and r.startswith(("1.", "2.0.")))]


def choose() -> list[tuple[str, str, str]]:
    """Return (distribution, release, patch) for the checks.

    In ``pytorch-lightning`` these are the oldest and newest affected release of each patch. ``lightning`` has the same
    code, so as few releases as have all patches are enough.
    """
    chosen = []
    for patch in PATCHES:
        releases = affected(patch, "pytorch-lightning")
        chosen += [("pytorch-lightning", release, patch.name) for release in dict.fromkeys([releases[0], releases[-1]])]
    left = {patch.name: set(affected(patch, "lightning")) for patch in PATCHES}
    while any(left.values()):
        release = max(reversed(known_releases()), key=lambda r: sum(r in releases for releases in left.values()))
        covered = [name for name, releases in left.items() if release in releases]
        chosen += [("lightning", release, left.pop(name) and name) for name in covered]
    return sorted(chosen)


def on_one_worker(*chosen: str) -> Any:
    """Return a test case that runs on the worker of its release, since its tests share a process."""
    marks = [pytest.mark.xdist_group("-".join(chosen[:2]))]
    if chosen[:2] != NEWEST:
        marks.append(pytest.mark.slow)
    return pytest.param(*chosen, id="-".join(chosen), marks=marks)


NEWEST = ("pytorch-lightning", known_releases()[-1])
CHOSEN = choose()
GROUPS = sorted({(distribution, release) for distribution, release, _ in CHOSEN})


@cache
def conformance(distribution: str, release: str) -> dict[str, Any]:
    """Return the findings of ``conformance_program.py`` in a release."""
    variables = variants.environment_of(variants.Variant(distribution, release))
    with tempfile.TemporaryDirectory() as directory:
        status, printed = variants.preloaded().execute(PROGRAM, variables, timeout=280, cwd=directory)
    assert status == 0, printed
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def messages(failures: list[dict[str, str]], where: str) -> str:
    return "".join(f"\n{one['patch']} in {where}, {one['target']}: {one['check']}: {one['detail']}" for one in failures)


@pytest.mark.parametrize(("distribution", "release", "patch"), [on_one_worker(*chosen) for chosen in CHOSEN])
def test_patched_functions_conform_to_their_originals(distribution: str, release: str, patch: str) -> None:
    found = conformance(distribution, release)
    failures = [one for one in found["failures"] if one["patch"] == patch]
    assert not failures, messages(failures, f"{distribution} {release}")
    assert patch in found["checked"]


@pytest.mark.parametrize(("distribution", "release"), [on_one_worker(*chosen) for chosen in GROUPS])
def test_all_patches_of_a_release_can_be_undone_and_activated_twice(distribution: str, release: str) -> None:
    """Checks all patches of a release together."""
    failures = [one for one in conformance(distribution, release)["failures"] if not one["patch"]]
    assert not failures, messages(failures, f"{distribution} {release}")


SABOTAGE = """
import os, runpy, sys, types
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
from tests.unit.fakes import *
from lightning_patches.engine import attributes, functions, hooks, patcher, references

def without_source(original, namespace):
    space = {{"original": original}}
    exec("def replacement(*a, **k): return original(*a, **k)", space)
    return space["replacement"]

def copied(original):
    return types.FunctionType(original.__code__, original.__globals__, original.__name__)

dress, compose = functions.copy_metadata, attributes.PatchedAttribute.compose
build = times_ten
{sabotage}
use_catalogue(toy(
    Target(FUNCTION, build), Target(METHOD, build), Target("pytorch.subject:Base.klass", build),
    Target("pytorch.subject:Child.added", added, adds=True),
))
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
from lightning_patches.activation import startup
startup.on_import()
sys.argv[1:] = ["lightning"]
runpy.run_path({program!r}, run_name="__main__")
"""

OVERRIDES = '''
def is_overridden(name, instance, parent):
    """As Lightning's: looks through ``__wrapped__`` on one side only."""
    function = getattr(instance, name)
    return getattr(function, "__wrapped__", function).__code__ is not getattr(parent, name).__code__
'''


DRESSED = "functions.copy_metadata = lambda r, raw, o, a, n: (dress(r, raw, o, a, n), {})[0]"
FAULTS = {
    "none": ("", set()),
    "a trace to the original": (
     DRESSED.format("raw is functions.MISSING or setattr(r, '__wrapped__', functions.function_of(raw))"),
     {"only jsonargparse looks through it", "Lightning does not take it for an override"}),
    "another signature": (DRESSED.format("vars(r).pop('__signature__', None)"), {"signature is kept"}),
    "another parameter name": ("build = renamed", {"every call of the original is accepted"}),
    "another name": (DRESSED.format("setattr(r, '__qualname__', 'nowhere')"),
     {"names and docstring are kept", "it can be pickled by reference"}),
    "another docstring": (DRESSED.format("setattr(r, '__doc__', '?')"), {"names and docstring are kept"}),
    "another descriptor": ("functions.wrap_like = lambda raw, function: function",
     {"it is a plain function in the same descriptor"}),
    "no source": ("build = without_source", {"source can be shown"}),
    "aliases left": ("follow = references.update_copies\n" "references.update_copies = (\n"
     "    lambda moved, modules: follow(moved, list if any(s.layers for s in moved) else modules))",
     {"no alias of the original is left (patched after import)"}),
    "an addition left": ("attributes.PatchedAttribute.compose = (\n"
     "    lambda s: compose(s) if s.layers or s.original is not functions.MISSING else True)", {"undo is exact"}),
    "a copy put back": ("def undo(s):\n"
     "    if not s.layers and isinstance(s.original, types.FunctionType): s.original = copied(s.original)\n"
     "    return compose(s)\n" "attributes.PatchedAttribute.compose = undo",
     {"undo is exact", "signature is kept", "names and docstring are kept", "type hints are kept",
     "defaults are kept"}),
    "applied anew each time": ("activate = patcher.Patcher.activate\n"
     "patcher.Patcher.activate = lambda self, s, **k: (self.active and self.deactivate(), activate(self, s))[0]",
     {"activation twice is once"}),
    "a finder left": ("hooks.remove = lambda: None", {"undo restores sys.meta_path"}),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_checks_detect_faulty_patches(tmp_path: Path, fault: str) -> None:
    sabotage, expected = FAULTS[fault]
    write_lightning(tmp_path, source=AFFECTED)
    helpers = tmp_path / "lightning" / "pytorch" / "utilities"
    helpers.mkdir()
    (helpers / "__init__.py").touch()
    (helpers / "model_helpers.py").write_text(OVERRIDES)
    result = python(SABOTAGE.format(sabotage=sabotage, program=str(PROGRAM)), tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert {one["check"] for one in found["failures"]} == expected, messages(found["failures"], "the stand-in")
    assert found["targets"] == 4


COMPILED = """
import os
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
import torch
from tests.unit.fakes import *
names = ("f", "M.method", "M.static", "M.klass", "M.prop", "Keywords.method")
targets = [Target(f"pytorch.subject:{name}", times_ten) for name in names]
use_catalogue(toy(*targets), releases={"2.3.3": open(SUBJECT).read()})
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
from lightning_patches.activation import startup
startup.on_import()
from lightning.pytorch.subject import Keywords, M, f

def program(x):
    m = M()
    return f(x), m.method(x), m.static(x), m.klass(x), x * m.prop, Keywords().method(x)

assert hasattr(Keywords.method, "__wrapped__")

x = torch.ones(2)
for fullgraph in (True, False):
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="eager", fullgraph=fullgraph)(x)
    assert all(torch.equal(a, b) for a, b in zip(compiled, program(x))), compiled
print([int(value[0]) for value in compiled])
"""

TENSORS = """
def f(x):
    return x + 1


class M:
    def method(self, x):
        return x + 2

    @staticmethod
    def static(x):
        return x + 3

    @classmethod
    def klass(cls, x):
        return x + 4

    @property
    def prop(self):
        return 5


class Keywords:
    def __init__(self, **kwargs):
        pass

    def method(self, x):
        return x + 6
"""


def test_compiled_call_reaches_the_replacement(tmp_path: Path) -> None:
    write_lightning(tmp_path, source=TENSORS)
    (tmp_path / "lightning" / "pytorch" / "importer.py").unlink()
    subject = str(tmp_path / "lightning" / "pytorch" / "subject.py")
    assert check(COMPILED.replace("SUBJECT", repr(subject)), tmp_path) == "[20, 30, 40, 50, 50, 70]"
