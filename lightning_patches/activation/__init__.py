"""The ways in: the import, the launcher's ``sitecustomize``, the ``autostart`` line, and Lightning's entry points.

This module runs before everything else of the package, so that Ctrl-C ends our own command without a traceback from
its first moments on.
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
    # argv[0] is not the module's path yet, and Python's own options (-Bm, -mNAME) are not in it.
    frame: Optional[FrameType] = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_run_module_as_main" and "mod_name" in frame.f_locals:
            return bool(frame.f_locals["mod_name"] == "lightning_patches")
        frame = frame.f_back
    return False


OWN_COMMAND = _is_own_command()
"""True in ``lightning-patches`` and ``python -m lightning_patches``, and in no other program."""


def set_interrupt(raises: bool) -> None:
    """Choose what Ctrl-C does in our own command. In other programs, and where it is ignored, nothing changes.

    Args:
        raises: raise ``KeyboardInterrupt``, so that a command can clean up; otherwise end at once, with status 130.
    """
    if OWN_COMMAND:
        import _signal as signal  # type: ignore[import-not-found]  # loaded already; `signal` takes milliseconds

        raising: Any = signal.default_int_handler
        before, after = (_end, raising) if raises else (raising, _end)
        if signal.getsignal(signal.SIGINT) is before:
            signal.signal(signal.SIGINT, after)


def _end(*_: object) -> None:
    os._exit(130)


set_interrupt(raises=False)
