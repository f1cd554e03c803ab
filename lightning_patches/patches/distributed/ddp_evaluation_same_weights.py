"""All ranks validate, test and predict with the weights of rank zero."""

import inspect
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream
from lightning_patches.patches.checkpoints.compiled_names import named_tensors

_BUCKET_BYTES = 250 * 1024 * 1024
"""Size of one broadcast in bytes, as in DistributedDataParallel's constructor."""


def _setup(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def setup(self: Any, trainer: Any) -> None:
        original(self, trainer)
        if trainer.state.fn != "fit" and self.model is not None:
            _broadcast_states(self.model)  # in fit, DistributedDataParallel does this

    return setup


def _broadcast_states(module: Any) -> None:
    """Broadcast rank zero's parameters and buffers of ``module``, except those that DDP ignores."""
    import torch

    ignored = set(inspect.getattr_static(module, "_ddp_params_and_buffers_to_ignore", ()))
    states = [
        state.detach()
        for name, state in named_tensors(module)
        if name not in ignored and not torch.nn.parameter.is_lazy(state)
    ]
    if states:
        group = torch.distributed.distributed_c10d._get_default_group()
        torch.distributed._broadcast_coalesced(group, states, _BUCKET_BYTES, 0)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "all ranks evaluate with the weights of rank zero"),
    affected=(">=1.8.0,<2.0.2",),
    targets=(Target("pytorch.strategies.ddp:DDPStrategy.setup", _setup),),
    upstream=Upstream(
        pull_requests=(17370,),
        commit="97a61868fb",
        fixed_in="2.0.2",
        tests=("tests/tests_pytorch/overrides/test_distributed.py::test_params_synced_during_nonfit",),
    ),
    impact=Impact(
        "In Trainer.validate, test and predict under DDP, each rank keeps its initial weights. If these differ "
        "(no seed, or weights loaded only on rank zero), the result is a mix of several models, without a "
        "warning.",
        ("validation results differ between ranks", "trainer.predict gives different outputs on each GPU"),
    ),
    note="As in fit and in later releases, a program can no longer evaluate different weights on each rank on "
    "purpose. Parameters named in _ddp_params_and_buffers_to_ignore are not synchronized.",
)
