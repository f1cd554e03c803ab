"""Write a local file under a temporary name in the same directory, and rename it when it is complete."""

import contextlib
import os
import uuid
from typing import Any, BinaryIO, Iterator


def is_possible(path: Any) -> bool:
    """True if the path is, or would be, a regular local file in a writable directory."""
    if not isinstance(path, (str, os.PathLike)) or "://" in os.fspath(path) or "::" in os.fspath(path):
        return False
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        return False
    return os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


@contextlib.contextmanager
def written(path: Any) -> Iterator[BinaryIO]:
    """Open the temporary file. If an error occurs, it is removed, and an existing file at the path stays unchanged."""
    beside = os.path.join(os.path.dirname(os.path.abspath(path)), f".{uuid.uuid4().hex}.partial")
    try:
        with open(beside, "xb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise
