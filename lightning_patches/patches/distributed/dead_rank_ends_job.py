"""If a rank dies, the other ranks end instead of waiting for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable

from lightning_patches import notices
from lightning_patches.engine.distributions import upstream_module
from lightning_patches.patch import Impact, Patch, Target, Upstream

_MODULE = "strategies.launchers.subprocess_script"

_METHOD = "_SubprocessScriptLauncher._call_children_scripts"

_PERIOD = 1.0
"""Seconds between two checks of the ranks."""


def _watched(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    def call_children_scripts(self: Any) -> None:
        original(self)
        _watch(self.procs)

    return call_children_scripts


def _recorded(original: Callable[..., None], namespace: str) -> Callable[..., None]:
    """Record the processes that Fabric's launcher starts, because the launcher does not store them."""

    def call_children_scripts(self: Any) -> None:
        module = upstream_module(namespace, f"fabric.{_MODULE}")
        record = _Recording()
        module.subprocess = record
        try:
            original(self)
        finally:
            module.subprocess = subprocess
        _watch(record.started)

    return call_children_scripts


class _Recording:
    """A proxy of the module ``subprocess`` that records the started processes."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, *args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:  # noqa: N802
        self.started.append(subprocess.Popen(*args, **kwargs))
        return self.started[-1]


def _watch(ranks: list[subprocess.Popen[bytes]]) -> None:
    threading.Thread(target=_end_with_the_first, args=(ranks,), daemon=True, name="lightning-patches-ranks").start()


def _end_with_the_first(ranks: list[subprocess.Popen[bytes]]) -> None:
    """End this process and all ``ranks`` if one of them fails. Return if all end successfully."""
    while any(rank.poll() is None for rank in ranks) and not any(rank.returncode for rank in ranks):
        time.sleep(_PERIOD)
    for number, rank in enumerate(ranks, start=1):
        if rank.returncode:
            notices.say(
                f"local rank {number} (process {rank.pid}) ended with status {rank.returncode}. All other ranks on this"
                " machine are stopped, because they would wait for it. Its output above has the reason."
            )
            # The ranks are blocked in a collective, where other signals have no effect.
            deadly = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL
            for other in ranks:
                other.send_signal(deadly)
            os.kill(os.getpid(), deadly)


PATCH = Patch(
    group="hang",
    affected=(">=2.0.0,<2.1.0",),
    targets=(Target(f"pytorch.{_MODULE}:{_METHOD}", _watched), Target(f"fabric.{_MODULE}:{_METHOD}", _recorded)),
    witnesses=(
        f"pytorch.{_MODULE}:_SubprocessScriptLauncher.launch",
        f"fabric.{_MODULE}:_SubprocessScriptLauncher.launch",
    ),
    upstream=Upstream(
        issues=(8130,),
        pull_requests=(18218,),
        commit="7e13eb7299",
        fixed_in="2.1.0",
        tests=("tests/tests_fabric/strategies/launchers/test_subprocess_script.py::test_child_process_observer",),
    ),
    impact=Impact(
        "With strategy='ddp', if a rank crashes, the remaining ranks wait for it and keep their GPUs until "
        "someone stops them or the process group's timeout of 30 minutes expires.",
        (
            "training hangs after an exception in one rank",
            "the other processes keep running after a rank has crashed",
            "zombie processes after a rank has crashed",
        ),
    ),
    opt_in="users who train with strategy='ddp' on one node without a launcher that ends the job, such as "
    "torchrun or SLURM",
    note="Opt-in because rank zero is killed (SIGKILL, as in the fixed releases) whenever another rank exits "
    "with a nonzero status, even after the training: anything that rank zero still does, such as an "
    "upload, is lost. Launchers such as torchrun and SLURM watch the ranks that they started. If rank "
    "zero dies, nothing ends the other ranks, with this patch or in the fixed releases: issue 8130 is "
    "open.",
)
