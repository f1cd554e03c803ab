from functools import cache
from typing import Callable

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Result, Variant, run


@cache
def observed(variant, case):
    result = run("fsdp_initial_precision", variant, case, simulated_cuda=True)
    assert result.ok and len(result.observations) == 1, result
    return result.observations[0]


def test_small_steps_are_not_rounded_away():
    stock = observed(Variant("lightning", "2.6.1"), "trainer")
    assert stock["trained"] == stock["values"]
    shim = observed(Variant("lightning", "2.6.1", shim=True), "trainer")
    assert all(a != b for a, b in zip(sum(shim["trained"], []), sum(shim["values"], [])))


def test_true_half_precision_stays_half():
    stock = observed(Variant("lightning", "2.6.1"), "true")
    assert stock["dtypes"] == ["torch.bfloat16"] * 2
    assert observed(Variant("lightning", "2.6.1", shim=True), "true") == stock


def _dtypes(name: str) -> Callable[[Result], bool]:
    return sees(lambda seen: seen["dtypes"] == [name] * 2)


PROOFS = tuple(
    Proof(
        "fsdp-initial-precision",
        _dtypes(half),
        case=case,
        since="2.1.0",
        simulated_cuda=True,
        one_card=True,
        right=_dtypes("torch.float32"),
    )
    for case, half in (("fabric", "torch.bfloat16"), ("trainer", "torch.float16"))
)
