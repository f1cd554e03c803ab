"""FSDP can save a sharded checkpoint that contains only the weights."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _save_checkpoint(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def save_checkpoint(self: Any, checkpoint: Any, *args: Any, **kwargs: Any) -> None:
        if self._state_dict_type == "sharded":
            checkpoint.setdefault("optimizer_states", [])  # the original removes them again
        original(self, checkpoint, *args, **kwargs)

    return save_checkpoint


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=2.1.0,<2.2.2",),
    targets=(Target("pytorch.strategies.fsdp:FSDPStrategy.save_checkpoint", _save_checkpoint),),
    upstream=Upstream(
        pull_requests=(19524,),
        commit="b3275e05d1",
        fixed_in="2.2.2",
        tests=("tests/tests_pytorch/strategies/test_fsdp.py::test_fsdp_strategy_checkpoint",),
    ),
    impact=Impact(
        "FSDPStrategy(state_dict_type='sharded') raises an error when it saves a checkpoint that contains only "
        "the weights, with ModelCheckpoint(save_weights_only=True) or save_checkpoint(weights_only=True).",
        ("KeyError: 'optimizer_states'", "FSDP cannot save with save_weights_only=True"),
        error="KeyError: 'optimizer_states'",
    ),
)
