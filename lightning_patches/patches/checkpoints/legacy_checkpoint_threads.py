"""Several threads can load checkpoints at the same time."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream

_LEGACY = "pytorch.utilities.migration.utils:pl_legacy_patch"


# One lock per process: a child forked while a thread of the parent holds the lock would wait forever.
_locks: dict[int, Any] = {}


def _enter_alone(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def __enter__(self: Any) -> Any:  # noqa: N807
        lock = _locks.setdefault(os.getpid(), threading.RLock())
        lock.acquire()
        try:
            entered = original(self)
        except BaseException:
            lock.release()
            raise
        self._lightning_patches_lock = lock
        return entered

    return __enter__


def _exit_alone(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def __exit__(self: Any, *error: Any) -> None:  # noqa: N807
        lock = vars(self).pop("_lightning_patches_lock", None)  # None if __enter__ ran before the patch was applied
        try:
            original(self, *error)
        finally:
            if lock is not None:
                lock.release()

    return __exit__


PATCH = Patch(
    group="crash",
    affected=(">=1.9.0,<2.0.3",),
    targets=(Target(f"{_LEGACY}.__enter__", _enter_alone), Target(f"{_LEGACY}.__exit__", _exit_alone)),
    upstream=Upstream(
        pull_requests=(17678,),
        commit="4a884d2727",
        fixed_in="2.0.3",
        tests=("tests/tests_pytorch/checkpointing/test_legacy_checkpoints.py::test_legacy_ckpt_threading",),
    ),
    impact=Impact(
        "If two threads load checkpoints at the same time, one of them fails.",
        ("KeyError: 'pytorch_lightning.utilities.argparse_utils'",),
        error="KeyError: 'pytorch_lightning.utilities.argparse_utils'",
    ),
    note="The threads load one after the other, as from 2.0.3 on. In those releases, a process that is forked "
    "while a thread loads a checkpoint hangs when it loads one itself; with this patch it does not.",
    after=("legacy-checkpoint-enum",),
)
