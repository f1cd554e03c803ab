"""Find the installed distributions of Lightning and their versions on disk, without importing them.

The same source is published in two namespaces: ``lightning`` (``lightning.pytorch``, ``lightning.fabric``) and
``pytorch_lightning`` with ``lightning_fabric``. An environment often has both in different versions, so each package of
each namespace (:class:`Part`) has its own version.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NamedTuple, Optional

from lightning_patches import system
from lightning_patches.engine.hooks import ROOT_PACKAGES as ROOT_PACKAGES

PARTS: dict[str, dict[str, str]] = {
    "lightning": {"pytorch": "lightning.pytorch", "lite": "lightning.lite", "fabric": "lightning.fabric"},
    "pytorch_lightning": {"pytorch": "pytorch_lightning", "lite": "lightning_lite", "fabric": "lightning_fabric"},
}
"""Namespace -> part of upstream's source tree -> its package.

Fabric is called Lite in 1.8. Releases before 1.8 have only ``pytorch_lightning``.
"""

MARKER = "lightning-patches: "
"""Start of the comment with which a fork marks each change; the patch's name follows."""

FORBIDDEN = {"2.6.2", "2.6.3"}
"""Releases that were compromised on PyPI and withdrawn (``unpatched.ADVISORY``)."""

MAX_VERSION_INFO = 1 << 10
"""Largest ``version.info`` that is read, in bytes."""


def diffs_in(text: str) -> frozenset[str]:
    """Return the patches whose diffs a file's text carries, by the comments that mark them."""
    return frozenset(re.findall(f"{MARKER}([a-z0-9-]+)", text))


class Part(NamedTuple):
    """One installed package of a namespace, such as ``lightning.pytorch`` 2.3.3.

    Args:
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        name: ``"pytorch"``, ``"fabric"`` or ``"lite"``.
        package: name of the package.
        version: version of the code that an import would load.
        directory: directory of that code, possibly inside an archive.
        distribution: the installed distribution that ships it.
        loaded: version of the imported package; "" if it is not imported or has no version.
        has_source: True if the directory has Python source; False for archives and bare bytecode.
    """

    namespace: str
    name: str
    package: str
    version: str
    directory: str
    distribution: str
    loaded: str = ""
    has_source: bool = True

    def file_of(self, module: str) -> str:
        """Return the file of a module; ``module`` is ``"pytorch.tuner.lr_finder"``."""
        return _file_of(self.directory, module)


class Namespace(NamedTuple):
    """The installed parts of ``lightning``, or of ``pytorch_lightning`` with ``lightning_fabric``."""

    name: str
    parts: dict[str, Part]

    def part_of(self, location: str) -> Optional[Part]:
        """Return the part that has a module or a location such as ``"pytorch.tuner.lr_finder:_lr_find"``."""
        return self.parts.get(location.partition(":")[0].partition(".")[0])


@lru_cache(maxsize=None)
def _file_of(directory: str, module: str) -> str:
    path = os.path.join(directory, *module.split(".")[1:])
    package_file = os.path.join(path, "__init__.py")
    return package_file if os.path.isfile(package_file) else path + ".py"


def module_name(namespace: str, module: str) -> str:
    """``("pytorch_lightning", "fabric.wrappers")`` -> ``"lightning_fabric.wrappers"``."""
    part, dot, rest = module.partition(".")
    return PARTS[namespace][part] + dot + rest


def upstream_module(namespace: str, module: str) -> Any:
    """Import a module: ``("pytorch_lightning", "fabric.wrappers")`` -> the module ``lightning_fabric.wrappers``."""
    name = module_name(namespace, module)
    return sys.modules.get(name) or importlib.import_module(name)  # torch.compile can't trace the latter


def find(namespace: str, importing: Optional[ModuleSpec] = None) -> Optional[Namespace]:
    """Return a namespace with its installed parts; ``None`` if no part is installed. Imports nothing.

    Args:
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        importing: the spec of a module of the namespace that is about to be imported.
    """
    parts: dict[str, Part] = {}
    for name, package in PARTS[namespace].items():
        root = package.partition(".")[0]
        found = _locate(package, importing)
        if found is None:
            continue
        directory, loader = found
        version = _version(root, directory if package == root else os.path.dirname(directory), loader)
        distribution = _distribution_of(root)
        beside = parts.get("pytorch")
        if root == "lightning_fabric" and beside is not None and beside.version == version:
            distribution = beside.distribution  # pytorch-lightning ships both packages
        loaded = getattr(sys.modules.get(root), "__version__", "")  # a submodule, while the package is being imported
        has_source = os.path.isfile(os.path.join(directory, "__init__.py"))
        parts[name] = Part(
            namespace,
            name,
            package,
            version,
            directory,
            distribution,
            loaded if isinstance(loaded, str) else "",
            has_source,
        )
    return Namespace(namespace, parts) if parts else None


def _distribution_of(root: str) -> str:
    known = {"lightning": "lightning", "pytorch_lightning": "pytorch-lightning", "lightning_lite": "pytorch-lightning"}
    return known.get(root, "lightning-fabric")


def _locate(package: str, importing: Optional[ModuleSpec]) -> Optional[tuple[str, Any]]:
    """Return the directory from which a package is, was or would be imported, and its loader.

    Returns ``None`` for a directory without code.

    Args:
        package: ``"lightning_fabric"`` or ``"lightning.pytorch"``.
        importing: see :func:`find`.
    """
    root, _, rest = package.partition(".")
    # Python's finder is called first. Finders of other tools are needed only for packages that it does not find, such
    # as editable installations or single-file programs.
    others = [finder for finder in sys.meta_path if finder is not PathFinder and not _delegates(finder)]
    finders: list[Any] = [PathFinder, *others]
    path: Optional[list[str]] = None
    spec: Optional[ModuleSpec]
    if importing is not None and importing.name == root:
        path, spec = list(importing.submodule_search_locations or ()), importing
    elif root in sys.modules:
        module = sys.modules[root]
        path, spec = list(getattr(module, "__path__", ())), getattr(module, "__spec__", None)
    if path is not None:
        if not path or (spec is not None and spec.origin is None):
            return None
        if not rest:
            return path[0], getattr(spec, "loader", None)
    elif rest:
        # For "a.b", another finder may import "a". Call only the finder that has found "a".
        spec, finder = _first_of(finders, root, None)
        if spec is None:
            return None
        finders, path = [PathFinder, finder], list(spec.submodule_search_locations or ())
    spec, _ = _first_of(finders, package, path)
    return (spec.submodule_search_locations[0], spec.loader) if spec and spec.submodule_search_locations else None


def _first_of(finders: list[Any], name: str, path: Optional[list[str]]) -> tuple[Optional[ModuleSpec], Any]:
    for finder in finders:
        try:
            spec = finder.find_spec(name, path)
        except Exception:
            continue  # an error of another tool's finder; the import will raise it
        if spec is not None and spec.origin is not None and spec.submodule_search_locations:
            return spec, finder
    return None, None


def _delegates(finder: Any) -> bool:
    """True for our finder and wrapt's, which only call other finders."""
    return type(finder).__module__.partition(".")[0] in ("wrapt", "lightning_patches")


def _version(root: str, directory: str, loader: Any) -> str:
    # version.info takes precedence over the metadata: it describes the imported code, also in a source checkout or a
    # directory on PYTHONPATH, and it is fast to read.
    for candidate in (
        os.path.join(directory, "version.info"),
        os.path.join(os.path.dirname(directory), "version.info"),
    ):
        try:
            version = str(_read(candidate, loader), "utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if version:
            return version
    return system.installed_version(_distribution_of(root)) or "unknown"


def _read(path: str, loader: Any) -> bytes:
    try:
        return system.read_regular(path, MAX_VERSION_INFO)
    except OSError:
        if not hasattr(loader, "archive"):
            raise
        return bytes(loader.get_data(path))  # a zipimporter
