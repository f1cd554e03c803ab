"""A DataLoader worker that fails while it is being stopped does not end the program."""

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream

_FUNCTION = "_shutdown_workers_and_reset_iterator"


def _shut_down(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def _shutdown_workers_and_reset_iterator(dataloader: Any) -> None:
        try:
            original(dataloader)
        except Exception as error:
            if not hasattr(getattr(dataloader, "_iterator", None), "_shutdown_workers"):
                raise
            dataloader._iterator = None
            notices.warn_once(
                "worker-shutdown-error",
                f"A DataLoader worker failed while it was being stopped, after its last batch: {error}",
                all_ranks=True,
            )

    return _shutdown_workers_and_reset_iterator


PATCH = Patch(
    group="crash",
    affected=(">=1.8.0,<=2.6.6",),
    targets=(
        Target(f"pytorch.utilities.combined_loader:{_FUNCTION}", _shut_down, since="2.0.0"),
        Target(f"pytorch.trainer.supporters:CombinedLoader.{_FUNCTION}", _shut_down, before="2.0.0"),
    ),
    upstream=Upstream(
        issues=(21703,),
        pull_requests=(21708,),
        commit="1bd737acb0",
        tests=(
            "tests/tests_pytorch/utilities/test_combined_loader.py"
            "::test_combined_loader_reset_uses_del_not_shutdown_workers",
        ),
        merged=True,
    ),
    impact=Impact(
        "With persistent workers, a worker that dies while it is being stopped makes fit() or predict() fail at the "
        "end of a successful run: later teardown hooks are not called, and the exit status reports a failure.",
        ("in _shutdown_workers_and_reset_iterator", "Please call `iter(combined_loader)` first."),
        error="RuntimeError: Please call `iter(combined_loader)` first.",
        frames=("_shutdown_workers_and_reset_iterator",),
    ),
    note="The official fix is merged, but not released. It deletes the iterator, which stops the workers only "
    "if no other code refers to it; this patch stops the workers at once and reports the error in a "
    "warning. Training whose workers stop cleanly is unchanged. A script that detects dead workers by the "
    "error at the end gets a warning instead, and the exit status of a successful run.",
)
