"""Issue 21447: an ordered sampler is shuffled with several ranks. The patch only warns."""

import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-sampler-shuffled", "2.6.6", "pytorch-lightning", scenario="sampler_order_kept")

pytestmark = pytest.mark.distributed


def seen(version, case, shim=True):
    result = PROGRAM.run(case, version, shim=shim)
    assert result.ok, result
    return result.observations


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_lost_order_of_a_custom_sampler_causes_a_warning(version):
    stock, (first, second) = seen(version, "", shim=False), seen(version, "")
    (warning,) = first["warnings"]
    assert warning.startswith("The samples that Backwards chooses are shuffled")
    assert [first["seen"], second["seen"]] == [rank["seen"] for rank in stock] and not second["warnings"]
    assert all(rank["seen"] != sorted(rank["seen"], reverse=True) for rank in stock)


@pytest.mark.parametrize(("case", "name"), [("sequential", "FromTheEnd"), ("batches", "Backwards")])
def test_warning_suggests_no_useless_opt_in(case, name):
    (warning,) = seen("2.6.6", case)[0]["warnings"]
    assert warning.startswith(f"The samples that {name} chooses are shuffled")
    assert "sampler-order-kept" not in warning and "use_distributed_sampler=False" in warning


@pytest.mark.parametrize("case", ["torch", "divides"])
def test_warning_is_absent_if_the_order_is_kept(case):
    """The sampler is one of torch's, or Lightning does not replace it."""
    assert [rank["warnings"] for rank in seen("2.6.6", case)] == [[], []]
