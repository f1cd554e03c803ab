"""Only rank zero checks if a checkpoint exists, and no object is broadcast."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_CALLBACK = "pytorch.callbacks.model_checkpoint:ModelCheckpoint"

_WAYS = ("broadcast", "reduce_boolean_decision", "reduce", "root_device", "is_global_zero", "global_rank")
"""Attributes of a strategy that take part in a joint decision of the ranks."""


def _file_exists(original: Callable[..., bool], namespace: str) -> Callable[..., bool]:
    def file_exists(self: Any, filepath: Any, trainer: Any) -> bool:
        strategy = trainer.strategy
        missing = not (strategy.is_global_zero and self._fs.exists(filepath))
        return not strategy.reduce_boolean_decision(missing)  # in 1.8 it can only tell if all ranks agree

    return file_exists


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<2.6.0",),
    targets=(
        Target(f"{_CALLBACK}.file_exists", _file_exists, stock=tuple(f"trainer.strategy.{way}" for way in _WAYS)),
    ),
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
        "At each save, all ranks check if the file exists in the storage, although only rank zero's result is "
        "used: a rank without access to the storage ends the run. The result is broadcast as a pickled object, "
        "through GPU memory if there is a GPU.",
        ("CUDA out of memory in broadcast_object_list while a checkpoint is saved",),
        error="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ...",
    ),
    note="The patch replaces the broadcast by Lightning's method for joint decisions, which reduces one "
    "number. A strategy that overrides either method is unchanged.",
)
