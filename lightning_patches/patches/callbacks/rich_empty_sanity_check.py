"""RichProgressBar works with a sanity check that has no batches."""

from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream


def _on_sanity_check_end(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def on_sanity_check_end(self: Any, trainer: Any, pl_module: Any) -> None:
        if self.progress is not None and self.val_sanity_progress_bar_id is None:
            self.refresh()  # no bar was started
        else:
            original(self, trainer, pl_module)

    return on_sanity_check_end


PATCH = Patch(
    added="0.2.0",
    group="crash",
    affected=(">=1.8.0,<2.5.4",),
    targets=(
        Target("pytorch.callbacks.progress.rich_progress:RichProgressBar.on_sanity_check_end", _on_sanity_check_end),
    ),
    upstream=Upstream(
        pull_requests=(21108,),
        commit="7e9cea4b63",
        fixed_in="2.5.4",
        tests=(
            "tests/tests_pytorch/callbacks/progress/test_rich_progress_bar.py"
            "::test_rich_progress_bar_empty_val_dataloader_model",
        ),
    ),
    impact=Impact(
        "With RichProgressBar, fit raises an AssertionError without a message if val_dataloader returns an empty list.",
        ("assert self.val_sanity_progress_bar_id is not None",),
        error="AssertionError",
    ),
)
