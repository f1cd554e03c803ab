"""Lightning calls set_epoch() of a custom sampler under DDP."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _set_epoch(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def set_epoch(self: Any, epoch: int) -> None:
        original(self, epoch)
        inner = getattr(self.dataset._sampler, "set_epoch", None)
        if callable(inner) and _takes_the_epoch(inner):
            inner(epoch)

    return set_epoch


def _takes_the_epoch(method: Callable[..., Any]) -> bool:
    """True if the method can be called with only the epoch. If it needs more, the program calls it."""
    try:
        inspect.signature(method).bind(0)
    except (TypeError, ValueError):
        return False
    return True


def _target(module: str, wrapper: str, before: str = "") -> Target:
    return Target(f"{module}:{wrapper}.set_epoch", _set_epoch, adds=True, before=before)


PATCH = Patch(
    group="correctness",
    changes_results=Effect("order of data", "under DDP, with a custom sampler that has set_epoch"),
    affected=(">=2.0.0,<=2.6.6",),
    targets=(
        _target("fabric.utilities.distributed", "DistributedSamplerWrapper", before="2.6.1"),
        _target("pytorch.overrides.distributed", "UnrepeatedDistributedSamplerWrapper"),
    ),
    upstream=Upstream(
        issues=(21454,),
        pull_requests=(21456,),
        others=((21456, "2.6.1"),),
        commit="79a39c04d3",
        tests=("tests/tests_fabric/utilities/test_distributed.py::test_distributed_sampler_wrapper_set_epoch",),
    ),
    impact=Impact(
        "With more than one rank, a custom sampler whose order depends on set_epoch() (bucketing, weighting, "
        "curriculum) yields the order of epoch 0 in every epoch. In 2.6.1 to 2.6.6 this happens only in "
        "predict.",
        ("set_epoch is not called on a custom sampler", "same order of data in every epoch under DDP"),
    ),
    opt_in="users who train on several devices with a sampler that has set_epoch(epoch), and whose script does "
    "not call it",
    signs=("set_epoch",),
    note="Samplers without set_epoch, or whose set_epoch needs other arguments, are unchanged. The patch also "
    "calls set_epoch in predict, even on one device; the official fix (2.6.1) leaves out the wrapper that "
    "predict uses.",
)
