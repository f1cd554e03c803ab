"""ModelCheckpoint(train_time_interval=...) also saves with manual optimization."""

from types import SimpleNamespace
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream

_AUTOMATIC = SimpleNamespace(automatic_optimization=True)


def _on_train_batch_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_train_batch_end(self: Any, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        if self._train_time_interval is not None:
            # The branch for automatic optimization handles the interval, and reads no other attribute of the module.
            pl_module = _AUTOMATIC
        original(self, trainer, pl_module, *args, **kwargs)

    return on_train_batch_end


PATCH = Patch(
    added="0.2.0",
    group="correctness",
    changes_results=Effect("files", "the checkpoints at the interval"),
    affected=(">=2.6.0,<=2.6.6",),
    targets=(Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint.on_train_batch_end", _on_train_batch_end),),
    upstream=Upstream(pull_requests=(21699,)),
    impact=Impact(
        "With manual optimization, ModelCheckpoint(train_time_interval=...) saves no checkpoint during training, "
        "without a warning: a killed run must start again.",
        ("train_time_interval saves no checkpoint", "no checkpoint in the middle of a run with manual optimization"),
    ),
    opt_in="users who rely on train_time_interval with manual optimization",
    signs=("train_time_interval automatic_optimization",),
    note="Opt-in because checkpoints are saved, and their hooks called, where stock saves none. With several "
    "ranks each batch then has a broadcast, as with automatic optimization. 2.5.6 saves these "
    "checkpoints, too. The files have the weights after the step. Without the patch, use "
    "every_n_train_steps.",
)
