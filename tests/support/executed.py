"""Which functions of Lightning a scenario executes, and which of them the patches call: noted in each of its processes,
read by those who ran it.

Two releases in which all that is executed is the same source need one run (see ``tests/equivalence/same_code.py``).
What a patch calls stands in its record.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import warnings
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Optional

Executed = frozenset[tuple[str, str]]
"""``("pytorch/trainer/trainer.py", "Trainer.fit")``; ``"<module>"`` for a module's own statements."""

ROOTS = {"lightning": "", "pytorch_lightning": "pytorch/", "lightning_fabric": "fabric/"}
"""Root package -> where it lies in upstream's source tree."""
_SOURCE = Path(__file__).with_suffix(".c")
PATCHES = os.path.join("lightning_patches", "patches", "")
PASSES_ON = "hook_calls.py"
"""A patch whose replacements call hooks by the names that Lightning hands them: those are Lightning's calls."""
_codes: list[CodeType] = []
_called: list[CodeType] = []


@cache
def build() -> None:
    """Compile what takes the notes on CPython 3.11, once for all processes of a user. Without it a short run takes
    twice as long."""
    library = _library()
    if sys.version_info[:2] != (3, 11) or library.exists():
        return
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as directory:
        built = Path(directory, library.name)
        include = f"-I{sysconfig.get_path('include')}"
        command = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", include, str(_SOURCE), "-o", str(built)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            message = f"what is executed is noted slowly: {_SOURCE.name} cannot be compiled: {error}"
            warnings.warn(f"{message}\n{getattr(error, 'stderr', '')}", stacklevel=3)
        else:
            built.replace(library)


def note(directory: str, out: str) -> None:
    """Note what is executed from now on, in this thread and others.

    Args:
        directory: holds the release, as it is on ``sys.path``.
        out: where :func:`leave` puts what was noted.
    """
    if not hasattr(CodeType, "co_qualname"):  # Python 3.11
        return

    library = _library()
    if library.exists():
        spec = importlib.util.spec_from_file_location("_executed", library)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.note(PATCHES, PASSES_ON, _codes, _called)
    else:
        tracer = _Tracer()
        sys.settrace(tracer)
        threading.settrace(tracer)
    atexit.register(leave, directory, out)


def _library() -> Path:
    """What is compiled for this Python from this source."""
    folder = Path(os.environ.get("LIGHTNING_PATCHES_TEST_CACHE", "~/.cache/lightning-patches-tests")).expanduser()
    digest = hashlib.sha256(_SOURCE.read_bytes() + sys.version.encode()).hexdigest()
    return folder / f"executed-{sys.implementation.cache_tag}-{digest[:16]}.so"


class _Tracer:
    """Notes in Python. It leaves out the threads that run already."""

    def __init__(self) -> None:
        self._executed: set[int] = set()
        self._called: set[int] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:  # None: lines are not traced
        code, caller = frame.f_code, frame.f_back
        self._add(code, self._executed, _codes)
        file = caller.f_code.co_filename if caller is not None else ""
        if PATCHES in file and PASSES_ON not in file:
            self._add(code, self._called, _called)

    @staticmethod
    def _add(code: CodeType, seen: set[int], noted: list[CodeType]) -> None:
        if id(code) not in seen:  # code of two files can be equal
            seen.add(id(code))
            noted.append(code)


def leave(directory: str, out: str) -> None:
    """Write down what this process has executed so far, and what of it the patches have called."""
    for what, codes in (("executed", _codes), ("called", _called)):
        path = Path(out, f"{what}.{os.getpid()}.json")
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(sorted(_of_lightning(codes.copy(), os.path.join(directory, "")))))
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
