"""After Ctrl+C in the set-up of a run, or in a learning rate search, SIGINT is not ignored."""

from __future__ import annotations

import signal
import threading
from typing import Any, Callable

from lightning_patches.patch import Effect, Impact, Patch, Target


def _call_and_handle_interrupt(original: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def _call_and_handle_interrupt(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        handler = signal.getsignal(signal.SIGINT)
        try:
            return original(trainer, *args, **kwargs)
        except SystemExit:
            is_ours = handler is not None and threading.current_thread() is threading.main_thread()
            if is_ours and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
                signal.signal(signal.SIGINT, handler)
            raise

    return _call_and_handle_interrupt


PATCH = Patch(
    added="0.3.0",
    group="correctness",
    changes_results=Effect("how it ends", "a program that continues after Ctrl+C can be interrupted again"),
    affected=(">=2.4.0,<=2.6.6",),
    targets=(Target("pytorch.trainer.call:_call_and_handle_interrupt", _call_and_handle_interrupt),),
    impact=Impact(
        "After Ctrl+C in the set-up of fit, or in Tuner.lr_find, the process ignores SIGINT: a notebook, REPL or "
        "script that catches the exit can't be interrupted any more, and processes that it starts can't either.",
        ("Ctrl+C does nothing after an interrupted setup", "KeyboardInterrupt is ignored after Tuner.lr_find"),
        would_tell="that signal.getsignal(signal.SIGINT) is SIG_IGN",
    ),
)
