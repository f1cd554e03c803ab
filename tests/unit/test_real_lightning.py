"""Patching of real releases, which depends on their import order."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.run import check
from tests.support.variants import ROOT  # which puts scripts/ on the path

import _releases  # isort: skip

NAMES = "logged-metrics-device", "dataloader-error-unmasked"

VERDICTS = """
def verdicts():
    import lightning_patches
    return {f"{e.distribution} {e.version} {e.patch}": e.verdict for e in lightning_patches.report()}
"""


def run(program: str, *releases: tuple[str, str], **variables: str) -> Any:
    path = [_releases.unpacked(distribution, version) for distribution, version in releases]
    return json.loads(check(VERDICTS + program, *path, PYTHONWARNINGS="ignore", **variables).splitlines()[-1])


@pytest.mark.slow
def test_late_import_patches_and_deactivate_restores() -> None:
    program = """
import json, lightning.pytorch as pl
from lightning.pytorch.loops.fetchers import _DataFetcher
before = _DataFetcher.reset
import lightning_patches
after, applied = _DataFetcher.reset, verdicts()
left = lightning_patches.deactivate()
print(json.dumps([before is not after, _DataFetcher.reset is before, left, applied]))
"""
    swapped, restored, left, applied = run(program, ("lightning", "2.3.3"), LIGHTNING_PATCHES=",".join(NAMES))
    assert (swapped, restored, left) == (True, True, ["__main__.after"])
    for name in NAMES:
        assert applied[f"lightning 2.3.3 {name}"] == "applied"


@pytest.mark.slow
def test_package_works_in_an_archive(tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "bundle"), "zip", ROOT, "lightning_patches")
    program = f"""
import json, sys
sys.path.insert(0, {archive!r})
import lightning_patches, lightning.pytorch
found = verdicts()
print(json.dumps([lightning_patches.__file__, sorted({{v for k, v in found.items() if k.endswith({NAMES!r})}})]))
"""
    file, found = run(program, ("lightning", "2.3.3"))
    assert file.startswith(archive)
    assert found == ["applied"]


@pytest.mark.slow
def test_two_versions_in_one_process_have_separate_verdicts() -> None:
    """As after ``pip install lightning==2.3.3``, which also installs the newest ``pytorch-lightning``."""
    program = """
import json, lightning_patches
before = verdicts()
import lightning.pytorch, pytorch_lightning
print(json.dumps([before, verdicts()]))
"""
    releases = ("lightning", "2.3.3"), ("pytorch-lightning", "2.4.0")
    before, after = run(program, *releases, LIGHTNING_PATCHES=",".join((*NAMES, "-import-without-pkg-resources")))
    device, unmasked = NAMES
    assert [before[f"lightning 2.3.3 {name}"] for name in NAMES] == ["pending", "pending"]
    assert [after[f"lightning 2.3.3 {name}"] for name in NAMES] == ["applied", "applied"]
    assert before[f"pytorch-lightning 2.4.0 {device}"] == after[f"pytorch-lightning 2.4.0 {device}"] == "fixed-upstream"
    assert before[f"pytorch-lightning 2.4.0 {unmasked}"] == "pending"
    assert after[f"pytorch-lightning 2.4.0 {unmasked}"] == "applied"
    unselected = {key: verdict for key, verdict in after.items() if not key.endswith(NAMES)}
    assert not {"applied", "pending", "failed"} & set(unselected.values())


BEFORE_TORCH = """
import json, sys
import lightning_patches
def patches():
    return [name for name in sys.modules if name.startswith("lightning_patches.patches.") and name.count(".") == 3]
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            Finder.found = patches()
sys.meta_path.insert(0, Finder)
import lightning.pytorch
print(json.dumps([Finder.found, patches()]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("release", ["2.2.5", "2.6.6"])
def test_patch_modules_are_imported_after_torch(release: str) -> None:
    before, after = run(BEFORE_TORCH, ("lightning", release))
    assert {name.split(".")[2] for name in before} <= {"imports"}  # needed by Lightning's first lines
    assert len(after) > 50


LOADERS = """
import json, sys
import lightning_patches
from lightning_patches.engine import hooks
stood_around = []
execute = hooks._Loader.exec_module
def noting(self, module):
    stood_around.append(module.__name__)
    execute(self, module)
hooks._Loader.exec_module = noting
import {namespace}
modules = [name for name in sys.modules if name.partition(".")[0] in hooks.ROOT_PACKAGES]
given = []
for name in modules:
    parent = sys.modules.get(name.rpartition(".")[0])
    if hooks._finder.find_spec(name, getattr(parent, "__path__", None)) is not None:
        given.append(name)
used = "lightning_patches.engine.patcher" in sys.modules
from lightning_patches.engine import distributions, gate
from lightning_patches.patches import all_patches
wanted = set(hooks.ROOT_PACKAGES)  # while they are imported, no garbage is collected
found = distributions.find({namespace!r}.partition(".")[0])
for patch in all_patches():
    if patch.default and gate.decide(patch, found).verdict == "pending":
        targets = gate.targets_in(patch.whole, found)
        wanted.update(distributions.module_name(found.name, target.module) for target in targets)
print(json.dumps([sorted(stood_around), sorted(given), sorted(wanted.intersection(modules)), len(modules), used]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distribution", "release"),
    [("lightning", "2.2.5"), ("lightning", "2.6.6"), ("pytorch-lightning", "2.2.5"), ("pytorch-lightning", "2.6.6")],
)
def test_only_modules_with_targets_have_a_wrapped_loader(distribution: str, release: str) -> None:
    program = LOADERS.format(namespace={"lightning": "lightning.pytorch"}.get(distribution, "pytorch_lightning"))
    stood_around, given, wanted, modules, used = run(program, (distribution, release))
    assert stood_around == given == wanted and used
    assert 0 < len(wanted) < modules / 3


@pytest.mark.slow
def test_nothing_is_hooked_without_a_request() -> None:
    program = LOADERS.format(namespace="lightning.pytorch")
    stood_around, given, wanted, _, used = run(program, ("lightning", "2.2.5"), LIGHTNING_PATCHES="0")
    assert wanted and (stood_around, given, used) == ([], [], False)
