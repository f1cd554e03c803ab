"""Which functions of Lightning a scenario executes, and which of them the patches call: noted in each of its processes,
read by those who ran it.

Two releases in which all that is executed is the same source need one run (see ``tests/equivalence/same_code.py``).
What a patch calls stands in its record.
"""

from __future__ import annotations

import atexit
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


def note(directory: str, out: str) -> None:
    """Note what is executed from now on, in this thread and those that it starts.

    Args:
        directory: holds the release, as it is on ``sys.path``.
        out: where :func:`leave` puts what was noted.
    """
    if not hasattr(CodeType, "co_qualname"):  # Python 3.11
        return

    def called(frame: FrameType, event: str, argument: Any) -> None:
        _codes.add(frame.f_code)  # and None is returned: lines are not traced
        if frame.f_back is not None:
            caller = frame.f_back.f_code
            if caller not in _is_patch:
                _is_patch[caller] = PATCHES in caller.co_filename
            if _is_patch[caller]:
                _called.add(frame.f_code)

    sys.settrace(called)
    threading.settrace(called)
    atexit.register(leave, directory, out)


def leave(directory: str, out: str) -> None:
    """Write down what this process has executed so far, and what of it the patches have called."""
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
