"""With exact-data, the ranks together see what the program's loader yields in one process."""

from __future__ import annotations

import pytest

from tests.differential import resume

SAMPLE = (
    "random; fit; rank", "random; validate; rank", "subset; fit; none", "subset; overfit; one",
    "weighted, in own batches; fit; one", "num_samples; fabric; one", "own, in batches; predict; one",
    "subclass; fit; one",
)  # fmt: skip


@pytest.mark.parametrize("version", ["2.6.6"])
def test_ranks_see_the_samples_of_the_loader(version: str) -> None:
    found = resume.differences(version, "exact-data", SAMPLE, program="sampling.py")
    assert {name: differs for name, differs in found.items() if differs} == {}


@pytest.mark.parametrize("version", ["2.6.6"])
def test_known_difference_is_detected_on_stock_and_no_sample_is_worse_by_default(version: str) -> None:
    stock, default = (resume.differences(version, one, SAMPLE, program="sampling.py") for one in ("stock", "default"))
    assert stock["weighted, in own batches; fit; one; 2"] == ["other items"]
    assert not {name for name, differs in default.items() if not set(differs) <= set(stock[name])}
    assert stock["random; fit; rank; 2"] and not default["random; fit; rank; 2"]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_no_configuration_is_worse_than_on_stock(version: str) -> None:
    stock, default = (
        resume.differences(version, one, limit=3000, program="sampling.py") for one in ("stock", "default")
    )
    assert not {name for name, differs in default.items() if not set(differs) <= set(stock[name])}
