"""A setuptools command (see ``setup.cfg``) that adds tests, diffs and scripts to the source archive."""

from __future__ import annotations

import gzip
import os
import tarfile
from typing import Any

from setuptools.command.sdist import sdist

FOLDERS = ("scripts", "tests", "upstream")


class SourceArchive(sdist):  # type: ignore[misc]
    """``sdist``, which by itself takes only the package, and writes the time and the user into the archive."""

    def make_distribution(self) -> None:
        for folder in FOLDERS:
            for directory, folders, files in os.walk(folder):
                folders[:] = [name for name in folders if name not in ("__pycache__", "build")]
                self.filelist.extend(os.path.join(directory, name) for name in files if not name.endswith(".so"))
        super().make_distribution()

    def make_archive(self, base_name: str, format: str, *arguments: Any, **options: Any) -> str:
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return str(super().make_archive(base_name, format, *arguments, **options))

        def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.mtime, entry.mode = int(epoch), 0o755 if entry.mode & 0o100 else 0o644
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            return entry

        path = f"{base_name}.tar.gz"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with gzip.GzipFile(path, "wb", mtime=int(epoch)) as file, tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(options["base_dir"], filter=anonymous)
        return path
