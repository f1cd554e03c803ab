import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-sampler-shuffled", "2.6.6", "pytorch-lightning", scenario="sampler_order_kept")

pytestmark = pytest.mark.distributed

test_lost_order_of_a_custom_sampler_causes_a_warning = PROGRAM.warns(
    says="The samples that Backwards chooses are shuffled",
    on=("2.0.0", "2.6.6"),
    check=lambda result: all(rank["seen"] != sorted(rank["seen"], reverse=True) for rank in result.observations),
)
# The sampler is one of torch's, or Lightning does not replace it.
test_warning_is_absent_if_the_order_is_kept = PROGRAM.unchanged("torch", "divides")


@pytest.mark.parametrize(("case", "name"), [("sequential", "FromTheEnd"), ("batches", "Backwards")])
def test_warning_suggests_no_useless_opt_in(case, name):
    (warning,) = PROGRAM.shim(case).facts["warnings"]
    assert warning.startswith(f"The samples that {name} chooses are shuffled")
    assert "sampler-order-kept" not in warning and "use_distributed_sampler=False" in warning
