from typing import Any

import pytest

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.programs import Program
from tests.support.variants import Result, Variant, run

pytestmark = pytest.mark.distributed
NAME = "plain-batch-sampler"
PROGRAM = Program(NAME, "2.6.6")
OLDEST, NEWEST = Variant("pytorch-lightning", "2.0.0"), Variant("lightning", "2.6.6")
ERROR = "stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"


def observed(variant: Variant, case: str, shim: bool = False) -> list[dict[str, Any]]:
    result = PROGRAM.run(case, variant.version, shim=shim, distribution=variant.distribution)
    assert result.ok, result
    return result.observations


def _single_items(result: Result) -> bool:
    return sees(lambda seen: {len(batch) for batch in seen["seen"]} == {1})(result)


@pytest.mark.parametrize(
    ("stock", "case"),
    [(OLDEST, "given"), (NEWEST, "given"), (OLDEST, "weighted"), (NEWEST, "weighted"), (OLDEST, "fabric")],
    ids=str,
)
def test_other_loaders_do_not_fail_at_the_first_batch(stock: Variant, case: str) -> None:
    assert ends_with(ERROR)(run("plain_batch_sampler", stock, case))
    assert observed(stock, case, shim=True) == observed(stock, f"{case}, direct", shim=True)


@pytest.mark.parametrize(("stock", "case"), [(OLDEST, "overfit"), (NEWEST, "overfit"), (NEWEST, "fabric")], ids=str)
def test_working_loaders_are_unchanged(stock: Variant, case: str) -> None:
    assert observed(stock, case, shim=True) == observed(stock, case) == observed(stock, f"{case}, direct")


@pytest.mark.parametrize("stock", [OLDEST, NEWEST], ids=str)
def test_custom_distributed_sampler_is_kept(stock: Variant) -> None:
    """Each rank gets the other's items, unlike with Lightning's sampler."""
    for rank, seen in enumerate(observed(stock, "distributed", shim=True)):
        epoch = [list(range(start, start + 8, 2)) for start in (1 - rank, 9 - rank)]
        assert seen["seen"] == epoch + epoch, seen


def test_sampler_without_length_trains_as_on_stock() -> None:
    """Such a sampler cannot be split among the ranks. As on stock, they split the dataset instead."""
    assert {len(batch) for rank in observed(NEWEST, "unsized", shim=True) for batch in rank["seen"]} == {4}


PROOFS = (
    Proof(NAME, _single_items, case="hook", recommended="hook, direct"),
    Proof(NAME, ends_with(ERROR), case="fabric ranks", recommended="fabric ranks, direct"),
)
