from typing import Any

import pytest

from tests.support.programs import Program, only, sees

pytestmark = pytest.mark.distributed

PROGRAM = Program("process-group-device-id", "2.5.4", alone=True)


def test_group_has_the_device_of_each_rank():
    stock, shim = PROGRAM.both("swapped", "2.1.4", simulated_cuda=True)
    assert [rank["bound"] for rank in stock.observations] == ["None", "None"]
    assert [rank["bound"] for rank in shim.observations] == ["cuda:1", "cuda:0"]
    for name in ("device", "weights"):
        assert [rank[name] for rank in shim.observations] == [rank[name] for rank in stock.observations]


test_cpu_ranks_have_no_device_id = PROGRAM.unchanged(
    "cpu", check=lambda result: [rank["bound"] for rank in result.observations] == ["None", "None"]
)


def _each_to_its_own(result: Any) -> bool:
    return [(rank["bound"], rank["device"]) for rank in result.observations] == [("cuda:0",) * 2, ("cuda:1",) * 2]


PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: seen["bound"] == "None"),
        case=case,
        simulated_cuda=True,
        right=_each_to_its_own,
        observed=only("bound", "device", "weights") if case == "trainer" else only("bound", "device"),
    )
    for case in ("trainer", "fabric")
)
