"""ckpt_path='last' uses only checkpoints, not other files with "last" in their names."""

from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target, Upstream


def _find_last_checkpoints(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def find_last_checkpoints(self: Any, trainer: Any) -> Any:
        found = original(self, trainer)
        # If no file has the extension, the user chose other names, and all files are candidates.
        return {path for path in found if path.endswith(self.FILE_EXTENSION)} or found

    return find_last_checkpoints


PATCH = Patch(
    added="0.2.0",
    group="crash",
    changes_results=Effect(
        "numbers", "the checkpoint to resume from, if the newest file with `last` in its name is not a checkpoint"
    ),
    affected=(">=1.8.0,<2.1.3",),
    targets=(
        Target("pytorch.callbacks.model_checkpoint:ModelCheckpoint._find_last_checkpoints", _find_last_checkpoints),
    ),
    upstream=Upstream(
        pull_requests=(17072,),
        commit="67d3844818",
        fixed_in="2.1.3",
        tests=("tests/tests_pytorch/checkpointing/test_model_checkpoint.py::test_find_last_checkpoints",),
    ),
    impact=Impact(
        "fit(ckpt_path='last') loads the newest file with `last` in its name, even if it is a log or a figure, and "
        "fails.",
        ("invalid load key", "ckpt_path='last' takes another file"),
        error="_pickle.UnpicklingError: invalid load key, '...'.",
    ),
    note="The official fix also requires that the name starts with `last`. This patch accepts every name that "
    "contains `last` and has the extension of a checkpoint.",
)
