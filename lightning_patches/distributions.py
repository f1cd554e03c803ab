"""Which Lightnings are installed, and in which version: found on disk, without importing them.

The same source is published under two namespaces: ``lightning`` (``lightning.pytorch``, ``lightning.fabric``) and
``pytorch_lightning`` with ``lightning_fabric``. One environment often holds both, in different versions, so there is
no such thing as "the Lightning version": every question here is about one part of one namespace.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from typing import NamedTuple, Optional

PARTS: dict[str, dict[str, str]] = {
    "lightning": {"pytorch": "lightning.pytorch", "fabric": "lightning.fabric"},
    "pytorch_lightning": {"pytorch": "pytorch_lightning", "fabric": "lightning_fabric"},
}
"""Namespace -> part of upstream's source tree -> the package that holds it."""

ROOT_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric")

FORBIDDEN = {"2.6.2", "2.6.3"}
"""Compromised on PyPI and withdrawn (GHSA-w37p-236h-pfx3). Nobody should run them, patched or not."""


class Part(NamedTuple):
    """One installed package of a namespace, such as ``lightning.pytorch`` 2.3.3."""

    namespace: str
    name: str
    package: str
    version: str
    directory: str
    distribution: str

    def file_of(self, module: str) -> str:
        """The file that a module of this part is loaded from; ``module`` is ``"pytorch.tuner.lr_finder"``."""
        relative = module.split(".")[1:]
        path = os.path.join(self.directory, *relative)
        package_file = os.path.join(path, "__init__.py")
        return package_file if os.path.isfile(package_file) else path + ".py"


class Namespace(NamedTuple):
    """``lightning``, or ``pytorch_lightning`` with ``lightning_fabric``: the parts of it that are installed."""

    name: str
    parts: dict[str, Part]

    def part_of(self, location: str) -> Optional[Part]:
        """The part that holds a module or an attribute of one: ``"fabric"``, ``"pytorch.tuner.lr_finder:_lr_find"``."""
        return self.parts.get(location.partition(":")[0].partition(".")[0])


def module_name(namespace: str, module: str) -> str:
    """``("pytorch_lightning", "fabric.wrappers")`` -> ``"lightning_fabric.wrappers"``."""
    part, dot, rest = module.partition(".")
    return PARTS[namespace][part] + dot + rest


def find(namespace: str) -> Optional[Namespace]:
    """The installed parts of a namespace, ``None`` if there is none of them. Imports nothing."""
    parts: dict[str, Part] = {}
    for name, package in PARTS[namespace].items():
        root, _, sub = package.partition(".")
        directory = _package_directory(root)
        if directory is None:
            continue
        part_directory = os.path.join(directory, sub) if sub else directory
        if os.path.isfile(os.path.join(part_directory, "__init__.py")):
            version = _version(root, directory)
            distribution = _distribution_of(root)
            beside = parts.get("pytorch")
            if root == "lightning_fabric" and beside is not None and beside.version == version:
                distribution = beside.distribution  # pytorch-lightning ships both packages
            parts[name] = Part(namespace, name, package, version, part_directory, distribution)
    return Namespace(namespace, parts) if parts else None


def _distribution_of(root: str) -> str:
    return {"lightning": "lightning", "pytorch_lightning": "pytorch-lightning"}.get(root, "lightning-fabric")


def _package_directory(root: str) -> Optional[str]:
    loaded = sys.modules.get(root)
    locations = getattr(loaded, "__path__", None)
    if locations is None:
        # PathFinder rather than importlib.util.find_spec: no finder of another tool gets to act on this question.
        spec = importlib.machinery.PathFinder.find_spec(root)
        locations = spec.submodule_search_locations if spec is not None else None
    for location in locations or ():
        if os.path.isfile(os.path.join(location, "__init__.py")):
            return str(location)
    return None


def _version(root: str, directory: str) -> str:
    # What the package says of itself comes before metadata: it describes the code that is imported, also from a
    # source checkout or a directory on PYTHONPATH, and reading it costs nothing.
    for candidate in (
        os.path.join(directory, "version.info"),
        os.path.join(os.path.dirname(directory), "version.info"),
    ):
        try:
            with open(candidate, encoding="utf-8") as file:
                version = file.read().strip()
        except OSError:
            continue
        if version:
            return version
    from importlib import metadata  # takes longer to import than all of this package

    try:
        return metadata.version(_distribution_of(root))
    except metadata.PackageNotFoundError:
        return "unknown"
