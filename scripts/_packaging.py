"""What ``setup.cfg`` has setuptools run: a source archive holds the tests, the diffs and the scripts, too."""

from __future__ import annotations

import os

from setuptools.command.sdist import sdist

FOLDERS = ("scripts", "tests", "upstream")


class SourceArchive(sdist):  # type: ignore[misc]
    """``sdist``, which by itself takes only the package."""

    def make_distribution(self) -> None:
        for folder in FOLDERS:
            for directory, folders, files in os.walk(folder):
                folders[:] = [name for name in folders if name not in ("__pycache__", "build")]
                self.filelist.extend(os.path.join(directory, name) for name in files if not name.endswith(".so"))
        super().make_distribution()
