"""With exact-fabric, a loop in Fabric computes what the same loop in plain PyTorch computes."""

from __future__ import annotations

import pytest

from tests.differential import resume

SAMPLE = ("SGD; bf16-mixed; saved", "AdamW; 64-true; norm")
SAMPLE += ("reductions; 32-true", "modules; bf16-mixed", "stored; 32-true", "loaders; 32-true")


@pytest.mark.parametrize("version", ["2.6.6"])
def test_fabric_computes_what_torch_computes(version: str) -> None:
    found = resume.differences(version, "default,exact-fabric", SAMPLE, program="fabric_torch.py")
    assert {name: differs for name, differs in found.items() if differs} == {}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_nothing_differs_that_does_not_differ_on_stock(version: str) -> None:
    stock, default = (
        resume.differences(version, one, limit=3000, program="fabric_torch.py") for one in ("stock", "default")
    )
    assert not {name for name, differs in default.items() if not set(differs) <= set(stock[name])}
    assert stock["reductions; 32-true; 2"] and stock["modules; bf16-mixed; 1"]
