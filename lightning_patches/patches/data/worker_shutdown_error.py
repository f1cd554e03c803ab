"""A DataLoader worker that fails while it is stopped does not end the program."""

from __future__ import annotations

from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.patch import Impact, Patch, Target, Upstream, name_and_title


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
    *name_and_title(__name__, __doc__),
    group="crash",
    affected=(">=2.0.0,<=2.6.6",),
    targets=(Target("pytorch.utilities.combined_loader:_shutdown_workers_and_reset_iterator", _shut_down),),
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
        "With persistent workers, a worker that dies while it is being stopped makes fit() or predict() fail at "
        "the end of a run that went well: later teardown hooks are not called, and the program's exit status "
        "says that it failed.",
        (
            "in _shutdown_workers_and_reset_iterator",
            "Please call `iter(combined_loader)` first.",
        ),
        error="RuntimeError: Please call `iter(combined_loader)` first.",
        frames=("_shutdown_workers_and_reset_iterator",),
    ),
    note="The official fix is merged, but in no release. It deletes the iterator and counts on nobody else holding "
    "it; here the workers are stopped at once, as before, and a warning reports the error. Equivalent to the "
    "same training in a loop without Lightning, where torch lets the error pass. Who could rely on the old "
    "behaviour: Training whose workers end cleanly is as before. A script that takes the error at the end for "
    "a sign that a worker died gets a warning in its place, and the exit status of a run that succeeded.",
)
