"""The Trainer checks its stage without string comparisons."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _training(original: Any, namespace: str) -> Callable[..., bool]:
    stages = original.__globals__.get("RunningStage")

    def training(self: Any) -> bool:
        return self.state.stage is stages.TRAINING or original(self)

    return training


PATCH = Patch(
    added="0.2.0",
    group="performance",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.trainer.trainer:Trainer.training", _training),),
    upstream=Upstream(issues=(20388,)),
    impact=Impact(
        "`trainer.training`, which Lightning reads 13 times per step and three times per self.log, converts two "
        "strings to lower case and compares them.",
        ("lightning_utilities enums __eq__ is called many times at each step",),
    ),
    note="Stages are first compared by identity. If a program sets the stage to a string, or to a member of "
    "another enum, it is compared as without the patch.",
)
