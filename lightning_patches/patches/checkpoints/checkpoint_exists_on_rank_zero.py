"""Only rank zero asks the storage whether a checkpoint exists; no object is broadcast."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from lightning_patches.engine.looks import home_of
from lightning_patches.patch import Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"

_WAYS = ("broadcast", "reduce_boolean_decision", "reduce", "root_device", "is_global_zero", "global_rank")
"""How the ranks of a strategy come to a decision."""


def _file_exists(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def file_exists(self: Any, filepath: Any, trainer: Any) -> bool:
        strategy: Any = trainer.strategy if _are_lightnings(namespace, trainer, "strategy") else None
        if not _are_lightnings(namespace, strategy, *_WAYS):
            return original(self, filepath, trainer)
        exists = strategy.is_global_zero and self._fs.exists(filepath)
        return bool(strategy.reduce_boolean_decision(exists, all=False))

    return file_exists


def _are_lightnings(namespace: str, owner: Any, *names: str) -> bool:
    """Whether nobody but Lightning says what they do."""
    for name in names:
        found = inspect.getattr_static(owner, name, None)  # what stands in for one may answer by __getattr__
        if not home_of(getattr(found, "fget", found)).startswith(f"{namespace}."):
            return False
    return True


PATCH = Patch(
    name="checkpoint-exists-on-rank-zero",
    title="Only rank zero asks the storage whether a checkpoint exists; no object is broadcast",
    group="crash",
    affected=(">=2.0.0,<2.6.0",),
    targets=(Target(f"{_CALLBACK}.file_exists", _file_exists),),
    upstream=Upstream(
        issues=(19674,),
        pull_requests=(21380,),
        commit="b09e96edb7",
        fixed_in="2.6.0",
        tests=(
            "tests/tests_pytorch/checkpointing/test_checkpoint_callback_frequency.py"
            "::test_model_checkpoint_ddp_monitor_none",
        ),
    ),
    impact=Impact(
        "At each save every rank asks the storage whether the file exists, though only rank zero's answer counts: "
        "a rank without access to it ends the run. The answer is broadcast as a pickled object, through the "
        "GPU's memory where there is one.",
        ("CUDA out of memory in broadcast_object_list while a checkpoint is saved",),
        error="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ...",
    ),
    note="Lightning's own method for a joint decision takes the place of the broadcast: one number is reduced. A "
    "strategy that overrides either is asked as before.",
)
