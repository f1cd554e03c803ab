import torch

from lightning_patches.patches.distributed.ddp_with_unfrozen import trained_among


def test_optimizers_are_read_only_if_a_parameter_was_unfrozen():
    parameter, asked = torch.nn.Parameter(torch.zeros(1), requires_grad=False), []
    assert trained_among([("weight", parameter)], lambda: asked.append(1) or []) == []
    assert asked == []
    parameter.requires_grad = True
    assert trained_among([("weight", parameter)], lambda: [torch.optim.SGD([parameter])]) == ["weight"]
