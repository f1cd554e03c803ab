import torch

from lightning_patches.patches.distributed.ddp_with_unfrozen import trained_among
from tests.support.programs import Program, observes

FABRIC = Program("warn-unfrozen-after-ddp", "2.6.6", "pytorch-lightning", alone=True)
TRAINER = Program("warn-unfrozen-after-ddp", "2.6.6", "pytorch-lightning", alone=True, scenario="ddp_with_unfrozen")


def are_alike(result):
    ranks = [{**rank, "head": None, "second": None} for rank in result.observations]
    return all(rank == ranks[0] for rank in ranks)


def differ(result):
    return not are_alike(result)


test_diverging_ranks_cause_one_warning = TRAINER.warns(
    "callback",
    "hand",
    says="backbone.0.weight is the first) were frozen when DDP wrapped the module",
    on=("2.0.0", "2.6.6"),
    check=differ,
)
# ``hand-lr`` is the usage that the warning recommends.
test_warning_is_absent_if_the_ranks_stay_equal = TRAINER.unchanged("untrained", "hand-lr", "one", check=are_alike)

test_diverging_ranks_with_fabric_cause_one_warning = FABRIC.warns(
    "hand", says="from now on. Leave them unfrozen when Fabric.setup is called", on=("2.0.0", "2.6.6"), check=differ
)
test_warning_is_absent_with_fabric_if_the_ranks_stay_equal = FABRIC.unchanged(
    "hand-lr", "untrained", "one", check=are_alike
)
test_freed_fabric_model_is_not_kept_in_memory = FABRIC.unchanged(
    "dropped", check=observes(*2 * [{"gone": True, "warnings": []}])
)


def test_optimizers_are_read_only_if_a_parameter_was_unfrozen():
    parameter, asked = torch.nn.Parameter(torch.zeros(1), requires_grad=False), []
    assert trained_among([("weight", parameter)], lambda: asked.append(1) or []) == []
    assert asked == []
    parameter.requires_grad = True
    assert trained_among([("weight", parameter)], lambda: [torch.optim.SGD([parameter])]) == ["weight"]
