from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.variants import Result, Variant, run

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.skipif(
        importlib.util.find_spec("accelerate") is None,
        reason="the hooks are those of the package accelerate, which is not installed (extra `test`)",
    ),
]

NEWEST = ("lightning", "2.6.6")

HOOKS = [["0"], ["cuda:1"]]

BUG = "Expected all tensors to be on the same device"


@cache
def variant(release: tuple[str, str], case: str, shim: bool, **environment: str) -> Result:
    environment["SCENARIO_PACKAGES"] = os.pathsep.join(_packages())
    return run(
        "align_devices", Variant(*release, shim=shim), case, simulated_cuda=True, environment=environment, timeout=300
    )


def _packages() -> list[str]:
    specs = map(importlib.util.find_spec, ("accelerate", "transformers", "peft"))
    return list(dict.fromkeys(str(Path(str(spec.origin)).parents[1]) for spec in specs if spec is not None))


def needs(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}, which is not installed (extra `test`)")


def assert_follows(release: tuple[str, str], case: str, bug: str = BUG, **environment: str) -> None:
    """Stock fails in the second rank; with the patch the results are bit-identical to those without hooks."""
    stock = variant(release, case, shim=False)
    assert not stock.ok and bug in stock.output, stock
    reference = variant(release, f"{case}_without_hooks", shim=False)
    assert reference.ok, reference
    patched = variant(release, case, shim=True, **environment)
    assert patched.ok, patched
    assert losses(patched) == losses(reference)
    assert len(losses(patched)[0]) >= 3 and losses(patched)[0] != losses(patched)[1]
    assert [rank["pinned"]["hooks"] for rank in patched.observations] == HOOKS


def losses(result: Result) -> list[Any]:
    return [rank["losses"] for rank in result.observations]


def test_model_follows_each_rank_of_a_trainer() -> None:
    assert_follows(NEWEST, "ddp")


def test_model_follows_each_rank_if_accelerate_is_imported_first() -> None:
    assert_follows(NEWEST, "ddp", ACCELERATE_FIRST="1")


def test_pretrained_model_with_adapters_follows_each_rank() -> None:
    needs("transformers", "peft")
    assert_follows(NEWEST, "peft")


def test_fsdp_model_follows_each_rank() -> None:
    assert_follows(NEWEST, "fsdp", bug="Inconsistent compute device and `device_id` on rank 1: cuda:0 vs cuda:1")


def test_model_follows_each_rank_of_fabric() -> None:
    stock = variant(NEWEST, "fabric", shim=False)
    assert [BUG in rank.get("error", "") for rank in stock.observations] == [False, True], stock
    reference, patched = variant(NEWEST, "fabric_without_hooks", shim=False), variant(NEWEST, "fabric", shim=True)
    assert losses(patched) == losses(reference)
    assert [rank["pinned"]["hooks"] for rank in patched.observations] == HOOKS


def test_model_on_several_devices_is_moved_to_each_rank() -> None:
    stock = variant(NEWEST, "spread", shim=False)
    assert not stock.ok and BUG in stock.output, stock
    patched = variant(NEWEST, "spread", shim=True)
    assert patched.ok and losses(patched) == losses(variant(NEWEST, "ddp_without_hooks", shim=False)), patched


def test_offloaded_model_raises_as_on_stock() -> None:
    stock, shim = (variant(NEWEST, "offloaded", shim=shim) for shim in (False, True))
    assert not stock.ok and "Cannot copy out of meta tensor" in stock.output, stock
    assert shim.observations == stock.observations, shim


# ------------------------------------------------------------------ one device
def seen(training: str, shim: bool) -> dict[str, Any]:
    result = variant(NEWEST, "one_device", shim)
    assert result.ok, result
    return result.observations[0][training]


@pytest.mark.parametrize(
    ("training", "reference"),
    [
        ("trainer", "trainer_without_hooks"),
        ("on_the_cpu", "on_the_cpu_without_hooks"),
        ("gathered", "trainer_without_hooks"),
        ("fabric", "fabric_without_hooks"),
    ],
)
def test_model_loaded_on_another_device_trains(training: str, reference: str) -> None:
    assert BUG in seen(training, shim=False)["error"]
    assert seen(training, shim=True)["losses"] == seen(reference, shim=False)["losses"]


def test_two_models_on_different_devices_train() -> None:
    assert BUG in seen("two_models", shim=False)["error"]
    assert seen("two_models", shim=True)["pinned"]["hooks"] == ["cuda:1"]


@pytest.mark.parametrize(
    "training",
    [
        "loaded_there",
        "stays_spread",
        "offloaded_whole",
        "fabric_spread_left_alone",
        "fabric_offloaded_left_alone",
        "without_accelerate",
    ],
)
def test_working_models_are_unchanged(training: str) -> None:
    assert "error" not in seen(training, shim=False)
    assert seen(training, shim=True) == seen(training, shim=False)


@pytest.mark.parametrize("training", ["offloaded", "fabric_offloaded"])
def test_model_that_cannot_move_raises_as_on_stock(training: str) -> None:
    assert "error" in seen(training, shim=False)
    assert seen(training, shim=True) == seen(training, shim=False)
