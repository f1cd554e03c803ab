"""A Trainer that was stopped early can fit again."""

from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _fit(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def fit(self: Any, *args: Any, **kwargs: Any) -> None:
        self.should_stop = False
        original(self, *args, **kwargs)

    return fit


PATCH = Patch(
    group="correctness",
    changes_results=Effect("numbers", "another fit trains"),
    affected=(">=1.8.0,<2.5.1",),
    targets=(Target("pytorch.trainer.trainer:Trainer.fit", _fit),),
    upstream=Upstream(pull_requests=(19177,), commit="40c682e930", fixed_in="2.5.1"),
    impact=Impact(
        "After a fit that was stopped early, the next fit of the same Trainer trains nothing.",
        consequences=(
            Consequence(
                ("callback_metrics[ ... KeyError: '...",),
                r"Checkpoint directory .{1,300}version_\d+.{1,100} exists and is not empty",
                "the Trainer ran fit earlier, and after a fit that was stopped early the next fit trains nothing",
            ),
        ),
    ),
)
