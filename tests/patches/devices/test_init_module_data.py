from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.support.programs import Program

PROGRAM = Program("init-module-data", "2.1.0", options={"simulated_cuda": True})

REPORTED = "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'"

MASKED = "RuntimeError: Please call `iter(combined_loader)` first."

WORKS_IN_STOCK = ("cuda_generator", "workers_mixing")

FAILS_BY_ITSELF = {
    "broken": "KeyError: 'no file for item",
    "unpicklable": "ValueError: this dataset holds an open file",
}


@cache
def observed(case: str, distribution: str, version: str, shim: bool) -> list[dict[str, Any]]:
    """Return the observations of each rank. The program continues after an error and must succeed."""
    result = PROGRAM.run(case, version, shim=shim, distribution=distribution)
    assert result.ok, result
    return result.observations


def assert_reported(found: dict[str, dict[str, Any]]) -> None:
    """Check that on stock every kind of data fails in the block, with the reported error or the one that hides it."""
    for data, attempt in found.items():
        if data not in WORKS_IN_STOCK:
            assert attempt["error"] in (REPORTED, MASKED), data


@pytest.mark.distributed
@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.1.0"), ("lightning", "2.6.6")])
def test_data_made_in_the_block_works_with_ddp(distribution: str, version: str) -> None:
    stock, shim = (observed("ddp", distribution, version, shim) for shim in (False, True))
    assert len(stock) == len(shim) == 2
    for rank in range(2):
        assert_reported(stock[rank]["inside"])
        assert stock[rank]["inside"]["workers"]["error"] == MASKED
        for data, outside in stock[rank]["outside"].items():
            assert outside["error"] is None, data
            assert sum(map(len, outside["drawn"].values())) == 12, data
            # drawn indices by stage, the default device afterwards, and the next random numbers
            assert shim[rank]["inside"][data] == outside, data
            assert shim[rank]["outside"][data] == outside, data
    for stage in ("validate", "predict"):
        ranks = [found["inside"]["evaluate"]["drawn"][stage] for found in shim]
        assert sorted(ranks[0] + ranks[1]) == list(range(12)), stage
    # Lightning shuffles the user's sampler, so warn-sampler-replaced warns
    shuffled, inside = shim[0]["warnings"]
    assert shuffled.startswith("The samples that OwnSampler chooses are shuffled")
    assert "`init_module()`" in inside
    assert "after the block" in inside
    assert shim[1]["warnings"] == []


def test_data_made_in_the_block_works_on_one_device() -> None:
    (stock,), (shim,) = (observed("one_device", "pytorch-lightning", "2.3.3", shim) for shim in (False, True))
    assert_reported(stock["inside"])
    for data in stock["outside"].keys() - {*WORKS_IN_STOCK, *FAILS_BY_ITSELF}:
        assert stock["outside"][data]["error"] is None, data
        assert stock["outside"][data]["drawn"]["fit"], data
        assert shim["inside"][data] == stock["outside"][data], data
    assert len(shim["warnings"]) == 1


def test_other_errors_are_unchanged() -> None:
    (stock,), (shim,) = (observed("one_device", "pytorch-lightning", "2.3.3", shim) for shim in (False, True))
    assert stock["inside"]["broken"]["error"] == REPORTED
    assert stock["inside"]["unpicklable"]["error"] == MASKED
    for data, message in FAILS_BY_ITSELF.items():
        assert shim["inside"][data]["error"].startswith(message), data
        assert shim["inside"][data]["left_at"] == "cpu", data


def test_working_programs_are_unchanged() -> None:
    (stock,), (shim,) = (observed("one_device", "pytorch-lightning", "2.3.3", shim) for shim in (False, True))
    assert stock["inside"]["shuffled"]["error"] == REPORTED
    for data in WORKS_IN_STOCK:
        assert stock["inside"][data]["error"] is None, data
        assert shim["inside"][data]["error"] is None, data
    # In the block a generator draws on the accelerator, as on stock.
    assert shim["inside"]["cuda_generator"]["drawn"] == stock["inside"]["cuda_generator"]["drawn"]
    # A user's sampler sees the block's device at every step, also while workers start.
    epochs = shim["inside"]["workers_mixing"]["drawn"]["fit"]
    assert sorted(epochs[:12]) == sorted(epochs[12:]) == list(range(12))


def test_data_made_in_the_block_works_with_fabric() -> None:
    (stock,), (shim,) = (observed("fabric", "lightning", "2.1.0", shim) for shim in (False, True))
    for data, outside in stock["outside"].items():
        assert stock["inside"][data]["error"] == REPORTED, data
        assert len(outside["drawn"]) == 24, data
        assert shim["inside"][data] == shim["outside"][data] == outside, data
    assert len(shim["warnings"]) == 1


def test_models_in_the_block_are_unchanged() -> None:
    stock, shim = (observed("contexts", "lightning", "2.6.6", shim)[0]["contexts"] for shim in (False, True))
    assert stock["half"]["weight"] == ["cuda:0", "torch.float16"]
    assert (stock["cuda"]["initialized"], stock["empty"]["initialized"]) == (True, False)
    for block, found in stock.items():
        if block in ("cpu", "meta"):  # no bug, and no change
            assert shim[block] == found
            continue
        assert found["generator"] == REPORTED, block
        assert shim[block] == {**found, "generator": "cpu", "modes": found["modes"] + 1}, block


@pytest.mark.parametrize("version", ["2.1.4", "2.2.5", "2.6.6"])
def test_block_works_as_decorator_and_opens_twice(version: str) -> None:
    stock, shim = (observed("contexts", "lightning", version, shim)[0]["forms"] for shim in (False, True))
    assert stock["gpu decorator"] == ["cuda", "cuda"]
    for form, found in stock.items():
        if form.endswith("extends"):
            assert shim[form][0] == found[0], form
        else:
            assert shim[form] == found, form
