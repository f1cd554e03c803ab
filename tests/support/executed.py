"""Which functions of Lightning a scenario executes, and which of them the patches call: noted in each of its processes,
read by those who ran it.

Two releases in which all that is executed is the same source need one run (see ``tests/equivalence/same_code.py``).
What a patch calls stands in its record.
"""

from __future__ import annotations

import atexit
import cProfile
import inspect
import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Optional

Executed = frozenset[tuple[str, str]]
"""``("pytorch/trainer/trainer.py", "Trainer.fit")``; ``"<module>"`` for a module's own statements."""

ROOTS = {"lightning": "", "pytorch_lightning": "pytorch/", "lightning_fabric": "fabric/"}
"""Root package -> where it lies in upstream's source tree."""
PATCHES = os.path.join("lightning_patches", "patches", "")
_codes: set[CodeType] = set()
_called: set[CodeType] = set()
_is_patch: dict[CodeType, bool] = {}
"""What has called something: whether it is code of a patch."""
_profilers: list[cProfile.Profile] = []
"""One for each thread."""


def note(directory: str, out: str) -> None:
    """Note what is executed from now on, in this thread and those that it starts.

    Args:
        directory: holds the release, as it is on ``sys.path``.
        out: where :func:`leave` puts what was noted.
    """
    if not hasattr(CodeType, "co_qualname"):  # Python 3.11
        return

    if sys.version_info < (3, 12):  # in C: a short run takes a quarter longer with it, and 60 % longer if traced
        _profile_thread()
        threading.setprofile(_profile_thread)
    else:  # there can be one profiler only, which may be the scenario's
        sys.settrace(_traced)
        threading.settrace(_traced)
    atexit.register(leave, directory, out)


def _profile_thread(frame: Optional[FrameType] = None, event: str = "", argument: Any = None) -> None:
    """Note what this thread executes from now on; called with the frame of the first function, if that runs already."""
    if frame is not None:
        _note(frame)
    profiler = cProfile.Profile(builtins=False)
    _profilers.append(profiler)
    profiler.enable()


def _traced(frame: FrameType, event: str, argument: Any) -> None:
    _note(frame)  # and None is returned: lines are not traced


def _note(frame: FrameType) -> None:
    _codes.add(frame.f_code)
    if frame.f_back is not None and _of_a_patch(frame.f_back.f_code):
        _called.add(frame.f_code)


def _of_a_patch(code: CodeType) -> bool:
    if code not in _is_patch:
        _is_patch[code] = PATCHES in code.co_filename
    return _is_patch[code]


def _take_over() -> None:
    """Note what the profilers have seen, and what is still running, of which they say nothing."""
    for profiler in list(_profilers):
        for entry in profiler.getstats():
            if isinstance(entry.code, CodeType):
                _codes.add(entry.code)
                if entry.calls and _of_a_patch(entry.code):
                    _called.update(call.code for call in entry.calls if isinstance(call.code, CodeType))
    if _profilers:
        for frame in list(sys._current_frames().values()):
            running: Optional[FrameType] = frame
            while running is not None:
                _note(running)
                running = running.f_back


def leave(directory: str, out: str) -> None:
    """Write down what this process has executed so far, and what of it the patches have called."""
    _take_over()
    for what, codes in (("executed", _codes), ("called", _called)):
        path = Path(out, f"{what}.{os.getpid()}.json")
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(sorted(_of_lightning(list(codes), os.path.join(directory, "")))))
        temporary.replace(path)


def _of_lightning(codes: list[CodeType], prefix: str) -> set[tuple[str, str]]:
    found = set()
    for code in codes:
        if code.co_filename.startswith(prefix):
            root, _, path = code.co_filename[len(prefix) :].partition(os.sep)
            if root in ROOTS:
                name = code.co_qualname.partition(".<")[0]
                # The body of a class is code of its own, which an import executes like that of its module.
                is_function = code.co_flags & inspect.CO_OPTIMIZED and not name.startswith("<")
                found.add((ROOTS[root] + path, name if is_function else "<module>"))
    return found


def read(out: str, ranks: int, what: str = "executed") -> Optional[Executed]:
    """What all processes of a run have "executed", or their patches "called"; ``None`` if one of the ranks has left no
    word."""
    files = list(Path(out).glob(f"{what}.*.json"))
    if len(files) < max(ranks, 1):
        return None
    return frozenset((path, name) for file in files for path, name in json.loads(file.read_text()))
