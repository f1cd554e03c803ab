"""After Ctrl+C in one rank, the other ranks end, too."""

import signal
import sys
from typing import Any, Callable

from lightning_patches.patch import Consequence, Effect, Impact, Patch, Target, Upstream


def _call_and_handle_interrupt(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _call_and_handle_interrupt(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(trainer, *args, **kwargs)
        if trainer.interrupted:  # set by Ctrl+C; other exceptions are raised again
            trainer._teardown()
            for rank in getattr(trainer.strategy.launcher, "procs", ()):
                if hasattr(rank, "send_signal"):  # a process that runs the script; spawned ranks end with this process
                    rank.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
            sys.exit(1)
        return result

    return _call_and_handle_interrupt


PATCH = Patch(
    added="0.2.0",
    group="hang",
    changes_results=Effect("how it ends", "Ctrl+C ends the program, with status 1"),
    affected=(">=2.0.0,<2.4.0",),
    targets=(Target("pytorch.trainer.call:_call_and_handle_interrupt", _call_and_handle_interrupt),),
    upstream=Upstream(
        pull_requests=(19976,),
        commit="c1af4d0527",
        fixed_in="2.4.0",
        tests=(
            "tests/tests_pytorch/trainer/test_trainer.py::test_keyboard_interrupt",
            "tests/tests_pytorch/trainer/test_states.py::test_interrupt_state_on_keyboard_interrupt",
        ),
    ),
    impact=Impact(
        "After Ctrl+C, the interrupted rank continues after fit as if training were complete. The other ranks "
        "continue to train and hold their GPUs.",
        ("Detected KeyboardInterrupt, attempting graceful shutdown", "Ctrl+C leaves processes on the GPU"),
        consequences=(
            Consequence(
                ("(ckpt_path='best')` is set but `ModelCheckpoint` is not configured to save the best model",),
                "attempting graceful shutdown",
                "fit was interrupted with Ctrl+C, and the program continued after it",
            ),
        ),
    ),
    opt_in="users who stop runs with several ranks with Ctrl+C",
    signs=("devices strategy",),
    note="Opt-in because a program that continues after Ctrl+C, for example to save or to test, exits instead, "
    "as from 2.4.0 on.",
)
