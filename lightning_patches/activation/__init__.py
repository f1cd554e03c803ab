"""Activation of the patches: by the import, by ``sitecustomize`` under ``run``, by the ``autostart`` line.

This module runs before all others of the package, so that Ctrl-C ends ``lightning-patches`` without a traceback, also
while it starts.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself is not imported at start-up
    from types import FrameType
    from typing import Any, Optional


def _is_own_command() -> bool:
    program = str((getattr(sys, "argv", None) or [""])[0])
    if program != "-m":
        return os.path.basename(program) in ("lightning-patches", "lightning-patches.exe")
    # With -m, argv[0] is "-m" until Python has found the module. The name of the module is only in a frame of runpy.
    frame: Optional[FrameType] = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_run_module_as_main" and "mod_name" in frame.f_locals:
            return bool(frame.f_locals["mod_name"] == "lightning_patches")
        frame = frame.f_back
    return False


OWN_COMMAND = _is_own_command()
"""True in ``lightning-patches`` and ``python -m lightning_patches``, and in no other program."""


def set_interrupt(raises: bool) -> None:
    """Choose the effect of Ctrl-C in ``lightning-patches``. Other programs, and an ignored SIGINT, are not changed.

    Args:
        raises: True to raise ``KeyboardInterrupt``, so that a command can clean up. False to end at once with status
            130.
    """
    if OWN_COMMAND:
        import _signal as signal  # type: ignore[import-not-found]  # importing `signal` takes milliseconds

        raising: Any = signal.default_int_handler
        before, after = (_end, raising) if raises else (raising, _end)
        if signal.getsignal(signal.SIGINT) is before:
            signal.signal(signal.SIGINT, after)


def _end(*_: object) -> None:
    os._exit(130)


set_interrupt(raises=False)
