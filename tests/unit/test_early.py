"""Targets that must be patched before their module runs, because a package calls them during its import."""

from __future__ import annotations

import importlib
import importlib.machinery
from pathlib import Path
from typing import Any

import pytest

from lightning_patches.engine import distributions
from lightning_patches.engine.verdicts import verdict
from lightning_patches.patch import Patch, Target
from tests.support.run import check
from tests.unit.fakes import AFFECTED, FUNCTION, World, broken, forget_lightning, times_ten, toy, write_lightning

ASKS = "ASKED = globals().get('helper', lambda: 'nobody answers')()\n"
"""A package that calls the patched function while it is imported."""


def answering(original: Any, namespace: str) -> Any:
    def helper() -> str:
        return f"answered in {namespace}"

    return helper


def early(build: Any = answering, **fields: Any) -> Patch:
    return toy(Target("pytorch:helper", build, adds=True, early=True), **fields)


def install(world: World, code: str = ASKS, namespace: str = "lightning") -> distributions.Namespace:
    found = world.install(namespace=namespace)
    package = world.root.joinpath(*distributions.PARTS[namespace]["pytorch"].split("."))
    (package / "__init__.py").write_text(code)
    importlib.invalidate_caches()
    return found


@pytest.mark.parametrize("namespace", distributions.PARTS)
def test_early_target_is_set_before_the_module_runs(world: World, namespace: str) -> None:
    installed = install(world, namespace=namespace)
    patch = early()
    patcher = world.activate(patch)
    assert verdict(patcher, patch, installed).verdict == "pending"
    module = world.load("pytorch", namespace)
    asked = module.ASKED
    assert asked == f"answered in {namespace}"
    assert verdict(patcher, patch, installed).verdict == "applied"
    assert patcher.deactivate() == []
    assert not hasattr(module, "helper")
    importlib.reload(module)
    assert module.ASKED == "nobody answers"


def test_late_targets_wait_for_their_module(world: World) -> None:
    installed = install(world)
    patch = toy(Target("pytorch:helper", answering, adds=True, early=True), Target(FUNCTION, times_ten))
    patcher = world.activate(patch)
    assert world.load("pytorch").ASKED == "answered in lightning"
    assert verdict(patcher, patch, installed).verdict == "pending"
    assert world.load().compute(3) == 60
    assert verdict(patcher, patch, installed).verdict == "applied"


def test_module_may_have_early_and_late_targets(world: World) -> None:
    install(world, ASKS + AFFECTED)
    world.activate(
        toy(Target("pytorch:helper", answering, adds=True, early=True), Target("pytorch:compute", times_ten))
    )
    for _ in range(2):  # wrapt's hook works only for the first import
        module = world.load("pytorch")
        assert (module.ASKED, module.compute(3)) == ("answered in lightning", 60)
        importlib.reload(module)
        assert (module.ASKED, module.compute(3)) == ("answered in lightning", 60)
        forget_lightning()


def test_failed_import_can_be_repeated(world: World) -> None:
    install(world, ASKS + "raise ImportError('a dependency is missing')\n")
    patcher = world.activate(early())
    with pytest.raises(ImportError, match="a dependency is missing"):
        world.load("pytorch")
    (world.root / "lightning" / "pytorch" / "__init__.py").write_text(ASKS + "# and now it works\n")
    importlib.invalidate_caches()
    module = world.load("pytorch")
    assert module.ASKED == "answered in lightning"
    assert patcher.deactivate() == []
    assert not hasattr(module, "helper")


def test_imported_package_is_not_patched_early(world: World) -> None:
    installed = install(world)
    module = world.load("pytorch")
    patch = early()
    patcher = world.activate(patch)
    assert module.ASKED == "nobody answers"
    assert verdict(patcher, patch, installed).verdict == "applied"
    assert importlib.reload(module).ASKED == "answered in lightning"


def test_builder_error_does_not_reach_the_import(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    installed = install(world)
    patch = early(broken)
    patcher = world.activate(patch)
    assert world.load("pytorch").ASKED == "nobody answers"
    assert verdict(patcher, patch, installed).verdict == "failed"
    assert "toy is not applied: RuntimeError: this builder is broken" in capsys.readouterr().err


ROOT_OF_A_NAMESPACE = """
import os, sys
os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"] = "1"
from tests.unit.fakes import *
from tests.unit.test_early import early
use_catalogue(early())
del os.environ["_LIGHTNING_PATCHES_IMPORT_ONLY"]
from lightning_patches.activation import startup

class Other:
    def find_spec(self, fullname, path=None, target=None):
        return None

{before}
startup.on_import()
{after}
import pytorch_lightning
print(pytorch_lightning.ASKED)
"""


@pytest.mark.parametrize("before", ["", "import wrapt; wrapt.register_post_import_hook(print, 'no.such.module')"])
@pytest.mark.parametrize("after", ["", "sys.meta_path.insert(0, Other())", "sys.meta_path.append(Other())"])
def test_activation_during_the_import_works(tmp_path: Path, before: str, after: str) -> None:
    """Activation waits for ``import pytorch_lightning``, and must end before that import runs its modules."""
    write_lightning(tmp_path, namespace="pytorch_lightning")
    (tmp_path / "pytorch_lightning" / "__init__.py").write_text(ASKS)
    program = ROOT_OF_A_NAMESPACE.format(before=before, after=after)
    assert check(program, tmp_path) == "answered in pytorch_lightning"
