import pytest
import torch

from lightning_patches.patches.distributed.ddp_with_unfrozen import trained_among
from tests.support.variants import Variant, run


def observed(version, case, shim):
    variant = Variant("pytorch-lightning", version, shim)
    result = run("ddp_with_unfrozen", variant, case, toggle="warn-unfrozen-after-ddp" if shim else None)
    assert result.ok, result
    return result.observations, [rank.pop("warnings") for rank in result.observations]


def are_alike(ranks):
    return ranks[0]["backbone"] == ranks[1]["backbone"]


@pytest.mark.parametrize(("version", "case"), [("2.0.0", "callback"), ("2.6.6", "callback"), ("2.6.6", "hand")])
def test_warns_once_if_the_ranks_diverge(version, case):
    stock, _ = observed(version, case, shim=False)
    assert not are_alike(stock)
    shim, (first, second) = observed(version, case, shim=True)
    assert shim == stock
    (warning,) = first
    assert warning.startswith("2 trained parameters (")
    assert "backbone.0.weight is the first) were frozen when DDP wrapped the module" in warning
    assert "ddp-with-unfrozen, or leave them unfrozen when fit begins" in warning
    assert second == []


@pytest.mark.parametrize("case", ["untrained", "hand-lr"])
def test_warning_is_absent_if_the_ranks_stay_equal(case):
    """``hand-lr`` is the usage that the warning recommends."""
    ranks, warnings = observed("2.6.6", case, shim=True)
    assert are_alike(ranks)
    assert warnings == [[], []]


def test_optimizers_are_read_only_if_a_parameter_was_unfrozen():
    parameter, asked = torch.nn.Parameter(torch.zeros(1), requires_grad=False), []
    assert trained_among([("weight", parameter)], lambda: asked.append(1) or []) == []
    assert asked == []
    parameter.requires_grad = True
    assert trained_among([("weight", parameter)], lambda: [torch.optim.SGD([parameter])]) == ["weight"]


def test_warning_is_absent_with_one_rank():
    _, warnings = observed("2.6.6", "one", shim=True)
    assert warnings == [[]]


def with_fabric(version, case, shim=True):
    variant = Variant("pytorch-lightning", version, shim)
    result = run("warn_unfrozen_after_ddp", variant, case, toggle="warn-unfrozen-after-ddp" if shim else None)
    assert result.ok, result
    return result.observations, [rank.pop("warnings") for rank in result.observations]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_warns_with_fabric_if_the_ranks_diverge(version):
    stock, _ = with_fabric(version, "hand", shim=False)
    assert stock[0]["first"] != stock[1]["first"]
    shim, ((warning,), second) = with_fabric(version, "hand")
    assert shim == stock
    assert warning.startswith("2 trained parameters (0.weight is the first)")
    assert "Leave them unfrozen when Fabric.setup is called" in warning
    assert second == []


@pytest.mark.parametrize("case", ["hand-lr", "untrained", "one"])
def test_warning_is_absent_with_fabric_if_the_ranks_stay_equal(case):
    ranks, warnings = with_fabric("2.6.6", case)
    assert all(rank["first"] == ranks[0]["first"] for rank in ranks)
    assert not any(warnings)


def test_freed_fabric_model_is_not_kept_in_memory():
    ranks, _ = with_fabric("2.6.6", "dropped")
    assert ranks == [{"gone": True}, {"gone": True}]
