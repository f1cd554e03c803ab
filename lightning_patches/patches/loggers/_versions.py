"""Find the next version folder of a logger."""

import os
from typing import Any


def next_version(fs: Any, folder: Any) -> int:
    """Return the highest N of the folders named ``version_N``, plus one. Other names are ignored.

    ``fs`` is None for a local folder: Fabric's CSVLogger of 1.9 has no file system object.

    Names are compared, not paths, because a file system may list a folder under another path than the requested one.
    """
    if fs is None:
        from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

        fs = LocalFileSystem()
    paths = (entry["name"].rstrip("/") for entry in fs.listdir(folder))
    names = (os.path.basename(path) for path in paths if fs.isdir(path))
    numbers = [name.split("_")[1] for name in names if name.startswith("version_")]
    return max((int(number) + 1 for number in numbers if number.isdigit()), default=0)
