import pytest

from tests.support.programs import Program, ends_with, sees

pytestmark = pytest.mark.distributed
NAME = "plain-batch-sampler"
PROGRAM = Program(NAME, "2.6.6")
ERROR = "stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"

test_other_loaders_do_not_fail_at_the_first_batch = PROGRAM.fixed(
    "given", "weighted", bug=ends_with(ERROR), reference="{}, direct", on=("2.0.0", "2.6.6"), toggle=NAME
)
test_fabrics_loader_does_not_fail_at_the_first_batch = PROGRAM.fixed(
    "fabric", bug=ends_with(ERROR), reference="{}, direct", on=("2.0.0",)
)
test_loader_for_overfitting_is_unchanged = PROGRAM.unchanged("overfit", on=("2.0.0", "2.6.6"))
test_fabrics_loader_is_unchanged = PROGRAM.unchanged("fabric")


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_custom_distributed_sampler_is_kept(version: str) -> None:
    """Each rank gets the other's items, unlike with Lightning's sampler."""
    shim = PROGRAM.shim("distributed", version)
    assert shim.ok and len(shim.observations) == 2, shim
    for rank, seen in enumerate(shim.observations):
        epoch = [list(range(start, start + 8, 2)) for start in (1 - rank, 9 - rank)]
        assert seen["seen"] == epoch + epoch, seen


def test_sampler_without_length_trains_as_on_stock() -> None:
    """Such a sampler cannot be split among the ranks. As on stock, they split the dataset instead."""
    shim = PROGRAM.shim("unsized")
    assert {len(batch) for rank in shim.observations for batch in rank["seen"]} == {4}, shim


PROOFS = (
    PROGRAM.proof(
        sees(lambda seen: {len(batch) for batch in seen["seen"]} == {1}), case="hook", recommended="hook, direct"
    ),
    PROGRAM.proof(ends_with(ERROR), case="fabric ranks", recommended="fabric ranks, direct"),
)
