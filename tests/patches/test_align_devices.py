"""Issue 20276: accelerate's hooks move a model's inputs to the device where it was loaded, in every rank."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.equivalence.proof import Proof, ends_with, only
from tests.support.arms import Arm, Result, run

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.skipif(
        importlib.util.find_spec("accelerate") is None,
        reason="the hooks are those of the package accelerate, which is not installed (extra `test`)",
    ),
]

NEWEST = ("lightning", "2.6.6")
BUG = "Expected all tensors to be on the same device"
ADVICE = 'Load it with device_map={"": local_rank}, which is {"": 1} here'


@cache
def arm(release: tuple[str, str], case: str, shim: bool, **environment: str) -> Result:
    environment["SCENARIO_PACKAGES"] = os.pathsep.join(_packages())
    return run(
        "align_devices", Arm(*release, shim=shim), case, simulated_cuda=True, environment=environment, timeout=300
    )


def _packages() -> list[str]:
    specs = map(importlib.util.find_spec, ("accelerate", "transformers", "peft"))
    return list(dict.fromkeys(str(Path(str(spec.origin)).parents[1]) for spec in specs if spec is not None))


def needs(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}, which is not installed (extra `test`)")


def assert_follows(release: tuple[str, str], case: str, bug: str = BUG, **environment: str) -> None:
    """Stock dies in the second rank; with the patch all is, to the last bit, as without hooks."""
    stock = arm(release, case, shim=False)
    assert not stock.ok and bug in stock.output, stock
    reference = arm(release, f"{case}_without_hooks", shim=False)
    assert reference.ok, reference
    mended = arm(release, case, shim=True, **environment)
    assert mended.ok, mended
    assert losses(mended) == losses(reference)
    assert len(losses(mended)[0]) >= 3 and losses(mended)[0] != losses(mended)[1]
    assert [rank["pinned"]["hooks"] for rank in mended.observations] == [["0"], ["1"]]
    assert [rank["pinned"]["maps"] for rank in mended.observations] == [[{"": "0"}], [{"": "1"}]]


def losses(result: Result) -> list[Any]:
    return [rank["losses"] for rank in result.observations]


def test_trainer_on_two_devices() -> None:
    assert_follows(NEWEST, "ddp")


def test_accelerate_imported_before_lightning() -> None:
    assert_follows(NEWEST, "ddp", ACCELERATE_FIRST="1")


def test_adapters_on_a_pretrained_model() -> None:
    needs("transformers", "peft")
    assert_follows(NEWEST, "peft")


def test_fsdp() -> None:
    assert_follows(NEWEST, "fsdp", bug="Inconsistent compute device and `device_id` on rank 1: cuda:0 vs cuda:1")


def test_fabric_on_two_devices() -> None:
    stock = arm(NEWEST, "fabric", shim=False)
    assert [BUG in rank.get("error", "") for rank in stock.observations] == [False, True], stock
    reference, mended = arm(NEWEST, "fabric_without_hooks", shim=False), arm(NEWEST, "fabric", shim=True)
    assert losses(mended) == losses(reference)
    assert [rank["pinned"]["hooks"] for rank in mended.observations] == [["0"], ["1"]]


@pytest.mark.parametrize("case", ["spread", "offloaded"])
def test_what_several_ranks_cannot_train_is_refused(case: str) -> None:
    stock = arm(NEWEST, case, shim=False)
    assert not stock.ok and (BUG if case == "spread" else "Cannot copy out of meta tensor") in stock.output, stock
    refused = arm(NEWEST, case, shim=True)
    how = "spread" if case == "spread" else "offloaded parts of"
    where = "embed, blocks.0 on cuda:0; blocks.1, head on cuda:1"
    if case == "offloaded":
        where = "embed, blocks.0, head on cuda:0; blocks.1 on cpu"
    assert not refused.ok
    assert len(refused.observations) == 2 and all("accelerate" in rank["error"] for rank in refused.observations)
    assert f"[rank 1] accelerate {how} Net (net): {where}" in refused.output, refused
    assert "DDPStrategy needs all of it on cuda:1, the device of this rank" in refused.output
    assert ADVICE in refused.output


# ------------------------------------------------------------------ one device


def seen(training: str, shim: bool) -> dict[str, Any]:
    result = arm(NEWEST, "one_device", shim)
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
def test_another_device_than_the_one_it_was_loaded_on(training: str, reference: str) -> None:
    assert BUG in seen(training, shim=False)["error"]
    assert seen(training, shim=True)["losses"] == seen(reference, shim=False)["losses"]


def test_gathering_is_said() -> None:
    (said,) = seen("gathered", shim=True)["warnings"]
    assert "accelerate spread Net (net)" in said and "SingleDeviceStrategy has moved all of it to cuda:1" in said
    assert seen("trainer", shim=True)["warnings"] == []


def test_two_models_each_loaded_on_a_device_of_its_own() -> None:
    assert BUG in seen("two_models", shim=False)["error"]
    assert seen("two_models", shim=True)["pinned"]["hooks"] == ["1"]


def test_offloaded_is_refused_where_it_cannot_be_moved() -> None:
    assert "Cannot copy out of meta tensor" in seen("offloaded", shim=False)["error"]
    refused = seen("offloaded", shim=True)["error"]
    assert "[rank 0] accelerate offloaded parts of Net (net)" in refused and ADVICE in refused
    assert "You can't move a model" in seen("fabric_offloaded", shim=False)["error"]
    assert "setup(..., move_to_device=False)" in seen("fabric_offloaded", shim=True)["error"]


@pytest.mark.parametrize(
    "training",
    [
        "loaded_there",
        "stays_spread",
        "offloaded_whole",
        "fabric_offloaded_left_alone",
        "fabric_spread_left_alone",
        "without_accelerate",
    ],
)
def test_what_works_is_left_alone(training: str) -> None:
    assert "error" not in seen(training, shim=False)
    assert seen(training, shim=True) == seen(training, shim=False)


PROOFS = (
    Proof(
        "align-devices",
        ends_with(BUG),
        case="ddp",
        simulated_cuda=True,
        observed=only("losses"),
        recommended="ddp_without_hooks",
    ),
    Proof(
        "align-devices",
        lambda result: any(BUG in rank.get("error", "") for rank in result.observations),
        case="fabric",
        simulated_cuda=True,
        observed=only("losses"),
        recommended="fabric_without_hooks",
    ),
)
