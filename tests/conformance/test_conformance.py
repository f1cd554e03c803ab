"""Every patch of the catalogue behaves, in its oldest and its newest affected release of both distributions.

What is checked stands in ``program.py``. One process checks all patches of a release at once.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lightning_patches import gate
from lightning_patches.catalog import all_patches
from lightning_patches.fingerprints import known_releases
from lightning_patches.patch import Patch
from tests.support import arms  # noqa: F401  puts scripts/ on the path
from tests.unit.fakes import AFFECTED, check, python, write_lightning

import _releases  # isort: skip

PROGRAM = Path(__file__).with_name("program.py")


def affected(patch: Patch, distribution: str) -> list[str]:
    """The releases in which a patch can be checked, oldest first."""
    releases = [release for release in known_releases() if release in gate.affected_releases(patch)]
    # `lightning` 2.0 imports the whole App with all its dependencies; its code is that of `pytorch-lightning`.
    return [r for r in releases if not (distribution == "lightning" and r.startswith("2.0."))]


def choose() -> list[tuple[str, str, str]]:
    """(distribution, release, patch): in ``pytorch-lightning`` the oldest and the newest affected release of each
    patch, in ``lightning``, which is the same code under another name, the fewest releases that have all patches."""
    chosen = []
    for patch in all_patches():
        releases = affected(patch, "pytorch-lightning")
        chosen += [("pytorch-lightning", release, patch.name) for release in dict.fromkeys([releases[0], releases[-1]])]
    left = {patch.name: set(affected(patch, "lightning")) for patch in all_patches()}
    while any(left.values()):
        release = max(reversed(known_releases()), key=lambda r: sum(r in releases for releases in left.values()))
        covered = [name for name, releases in left.items() if release in releases]
        chosen += [("lightning", release, left.pop(name) and name) for name in covered]
    return sorted(chosen)


CHOSEN = choose()
GROUPS = sorted({(distribution, release) for distribution, release, _ in CHOSEN})


@cache
def conformance(distribution: str, release: str) -> dict[str, Any]:
    """What ``program.py`` found in a release."""
    text = f"import sys; sys.argv[1:] = [{_releases.NAMESPACES[distribution]!r}]\n" + "__name__ = '__main__'\n"
    text += f"exec(compile(open({str(PROGRAM)!r}).read(), {str(PROGRAM)!r}, 'exec'))"
    printed = check(text, _releases.unpacked(distribution, release), timeout=280, OMP_NUM_THREADS="1")
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def told(failures: list[dict[str, str]], where: str) -> str:
    return "".join(f"\n{one['patch']} in {where}, {one['target']}: {one['check']}: {one['detail']}" for one in failures)


@pytest.mark.parametrize(("distribution", "release", "patch"), CHOSEN, ids=map("-".join, CHOSEN))
def test_patch(distribution: str, release: str, patch: str) -> None:
    found = conformance(distribution, release)
    failures = [one for one in found["failures"] if one["patch"] == patch]
    assert not failures, told(failures, f"{distribution} {release}")
    assert patch in found["checked"]


@pytest.mark.parametrize(("distribution", "release"), GROUPS, ids=map("-".join, GROUPS))
def test_release(distribution: str, release: str) -> None:
    """What all patches of a release do together: undo, activation twice."""
    failures = [one for one in conformance(distribution, release)["failures"] if not one["patch"]]
    assert not failures, told(failures, f"{distribution} {release}")


# ---------------------------------------------------------------- the checks themselves

SABOTAGE = """
import os, runpy, sys, types
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
from tests.unit.fakes import *
from lightning_patches import apply

def without_source(original, namespace):
    space = {{"original": original}}
    exec("def replacement(*a, **k): return original(*a, **k)", space)
    return space["replacement"]

def copied(original):
    return types.FunctionType(original.__code__, original.__globals__, original.__name__)

dress, like, compose, slot = apply._dress, apply._like, apply._compose, apply._Slot
build = times_ten
{sabotage}
use_catalogue(toy(
    Target(FUNCTION, build), Target(METHOD, build), Target("pytorch.subject:Base.klass", build),
    Target("pytorch.subject:Child.added", added, adds=True),
))
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
from lightning_patches import _startup
_startup.on_import()
sys.argv[1:] = ["lightning"]
runpy.run_path({program!r}, run_name="__main__")
"""

OVERRIDES = '''
def is_overridden(name, instance, parent):
    """As Lightning's: looks through ``__wrapped__`` on one side only."""
    function = getattr(instance, name)
    return getattr(function, "__wrapped__", function).__code__ is not getattr(parent, name).__code__
'''


DRESSED = "apply._dress = lambda r, s, n: (dress(r, s, n), {})[0]"
FAULTS = {
    "none": ("", set()),
    "a trace to the original": (
        DRESSED.format("s.original is apply.MISSING or setattr(r, '__wrapped__', apply._function_of(s.original))"),
        {"torch compile does not look through it", "Lightning does not take it for an override"},
    ),
    "another signature": (DRESSED.format("vars(r).pop('__signature__', None)"), {"signature is kept"}),
    "another name": (
        DRESSED.format("setattr(r, '__qualname__', 'nowhere')"),
        {"names and docstring are kept", "it can be pickled by reference"},
    ),
    "another docstring": (DRESSED.format("setattr(r, '__doc__', '?')"), {"names and docstring are kept"}),
    "another descriptor": (
        "apply._like = lambda raw, function: function",
        {"it is a plain function in the same descriptor"},
    ),
    "no source": ("build = without_source", {"source can be shown"}),
    "aliases left": (
        "swap = apply._swap_aliases\n"
        "apply._swap_aliases = lambda s, old, new: swap(s, old, new) if new is s.original else None",
        {"no alias of the original is left (patched after import)"},
    ),
    "an addition left": (
        "apply._compose = lambda s, n='': compose(s, n) if s.layers or s.original is not apply.MISSING else True",
        {"undo is exact"},
    ),
    "a copy put back": (
        "def undo(s, n=''):\n"
        "    if not s.layers and isinstance(s.original, types.FunctionType): s.original = copied(s.original)\n"
        "    return compose(s, n)\n"
        "apply._compose = undo",
        {"undo is exact", "signature is kept", "names and docstring are kept"},
    ),
    "applied anew each time": (
        "activate = apply.Patcher.activate\n"
        "apply.Patcher.activate = lambda self, s: (self.active and self.deactivate(), activate(self, s))[0]",
        {"activation twice is once"},
    ),
    "a finder left": ("apply.hooks.unwatch_all = lambda: None", {"undo restores sys.meta_path"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_checks_find_what_they_look_for(tmp_path: Path, fault: str) -> None:
    sabotage, expected = FAULTS[fault]
    write_lightning(tmp_path, source=AFFECTED)
    helpers = tmp_path / "lightning" / "pytorch" / "utilities"
    helpers.mkdir()
    (helpers / "__init__.py").touch()
    (helpers / "model_helpers.py").write_text(OVERRIDES)
    result = python(SABOTAGE.format(sabotage=sabotage, program=str(PROGRAM)), tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert {one["check"] for one in found["failures"]} == expected, told(found["failures"], "the stand-in")
    assert found["targets"] == 4


# ---------------------------------------------------------------- torch.compile


COMPILED = """
import os
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
import torch
from tests.unit.fakes import *
targets = [Target(f"pytorch.subject:{name}", times_ten) for name in ("f", "M.method", "M.static", "M.klass", "M.prop")]
use_catalogue(toy(*targets), releases={"2.3.3": open(SUBJECT).read()})
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
from lightning_patches import _startup
_startup.on_import()
from lightning.pytorch.subject import M, f

def program(x):
    m = M()
    return f(x), m.method(x), m.static(x), m.klass(x), x * m.prop

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
"""


def test_a_compiled_call_reaches_the_replacement(tmp_path: Path) -> None:
    write_lightning(tmp_path, source=TENSORS)
    (tmp_path / "lightning" / "pytorch" / "importer.py").unlink()
    subject = str(tmp_path / "lightning" / "pytorch" / "subject.py")
    assert check(COMPILED.replace("SUBJECT", repr(subject)), tmp_path) == "[20, 30, 40, 50, 50]"
