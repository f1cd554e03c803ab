"""Local files that are written beside their place, and take its name when they are complete."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import Any, BinaryIO, Iterator


def is_possible(path: Any) -> bool:
    """Whether this is, or would be, an ordinary file on this machine, in a directory to which files can be added."""
    if not isinstance(path, (str, os.PathLike)) or "://" in os.fspath(path) or "::" in os.fspath(path):
        return False
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        return False
    return os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


@contextlib.contextmanager
def written(path: Any) -> Iterator[BinaryIO]:
    """The open file. After an error nothing is left of it, and what was there before is there still."""
    beside = os.path.join(os.path.dirname(os.path.abspath(path)), f".{uuid.uuid4().hex}.partial")
    try:
        with open(beside, "xb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise
