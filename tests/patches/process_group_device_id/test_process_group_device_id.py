"""PR 21105: torch is not told which GPU a rank uses, and guesses."""

from typing import Any

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run

pytestmark = pytest.mark.distributed
PATCH = "process-group-device-id"


def observed(variant, case, simulated_cuda=True):
    result = run(
        "process_group_device_id", variant, case, simulated_cuda=simulated_cuda, toggle=PATCH if variant.shim else None
    )
    assert result.ok and len(result.observations) == 2, result
    return result.observations


def test_group_has_the_device_of_each_rank():
    stock = observed(Variant("pytorch-lightning", "2.1.4"), "swapped")
    assert [rank["bound"] for rank in stock] == ["None", "None"]
    shim = observed(Variant("pytorch-lightning", "2.1.4", shim=True), "swapped")
    assert [rank["bound"] for rank in shim] == [rank["device"] for rank in stock]
    assert [rank["device"] for rank in shim] == ["cuda:1", "cuda:0"]
    assert [rank["weights"] for rank in shim] == [rank["weights"] for rank in stock]


def test_cpu_ranks_have_no_device_id():
    stock = observed(Variant("lightning", "2.5.4"), "cpu", simulated_cuda=False)
    assert [rank["bound"] for rank in stock] == ["None", "None"]
    assert observed(Variant("lightning", "2.5.4", shim=True), "cpu", simulated_cuda=False) == stock


def _each_to_its_own(result: Any) -> bool:
    return [(rank["bound"], rank["device"]) for rank in result.observations] == [("cuda:0",) * 2, ("cuda:1",) * 2]


PROOFS = tuple(
    Proof(
        PATCH,
        sees(lambda seen: seen["bound"] == "None"),
        case=case,
        simulated_cuda=True,
        right=_each_to_its_own,
        observed=only("bound", "device", "weights") if case == "trainer" else only("bound", "device"),
    )
    for case in ("trainer", "fabric")
)
