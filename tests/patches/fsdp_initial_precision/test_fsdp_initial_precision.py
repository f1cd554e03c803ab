from typing import Callable

from tests.support.programs import Program, sees
from tests.support.variants import Result

PROGRAM = Program("fsdp-initial-precision", "2.6.1", options={"simulated_cuda": True})


def test_small_steps_are_not_rounded_away():
    stock, shim = (result.facts for result in PROGRAM.both("trainer"))
    assert stock["trained"] == stock["values"]
    assert all(a != b for a, b in zip(sum(shim["trained"], []), sum(shim["values"], [])))


test_true_half_precision_stays_half = PROGRAM.unchanged(
    "true", check=sees(lambda seen: seen["dtypes"] == ["torch.bfloat16"] * 2)
)


def _dtypes(name: str) -> Callable[[Result], bool]:
    return sees(lambda seen: seen["dtypes"] == [name] * 2)


PROOFS = tuple(
    PROGRAM.proof(
        _dtypes(half), case=case, since="2.1.0", simulated_cuda=True, one_card=True, right=_dtypes("torch.float32")
    )
    for case, half in (("fabric", "torch.bfloat16"), ("trainer", "torch.float16"))
)
