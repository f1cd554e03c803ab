"""Find the installed distributions of Lightning and their versions on disk, without importing them.

The same source is published in two namespaces: ``lightning`` (``lightning.pytorch``, ``lightning.fabric``) and
``pytorch_lightning`` with ``lightning_fabric``. An environment often has both, in different versions, so there is no
single Lightning version. Every function here is about one part of one namespace.
"""

from __future__ import annotations

import importlib
import os
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

Fabric (1.9 and later) is Lite in 1.8. Earlier releases have only ``pytorch_lightning``.
"""

FORBIDDEN = {"2.6.2", "2.6.3"}
"""Compromised on PyPI and withdrawn (``unpatched.ADVISORY``). They must not be used, patched or not."""

MAX_VERSION_INFO = 1 << 10
"""Bytes of a ``version.info``, which holds one version."""


class Part(NamedTuple):
    """One installed package of a namespace, such as ``lightning.pytorch`` 2.3.3.

    Args:
        namespace: ``"lightning"`` or ``"pytorch_lightning"``.
        name: ``"pytorch"``, ``"fabric"`` or ``"lite"``.
        package: name of the package.
        version: version of the code that an import finds.
        directory: directory of that code, which may be inside an archive.
        distribution: the installed distribution that ships it.
        loaded: version of the imported package; "" if it is not imported or has no version.
        has_source: True if the code is Python source. Archives and bare bytecode are not examined.
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
        """The file that a module of this part is loaded from; ``module`` is ``"pytorch.tuner.lr_finder"``."""
        return _file_of(self.directory, module)


class Namespace(NamedTuple):
    """``lightning``, or ``pytorch_lightning`` with ``lightning_fabric``: the parts of it that are installed."""

    name: str
    parts: dict[str, Part]

    def part_of(self, location: str) -> Optional[Part]:
        """The part that holds a module or an attribute of one: ``"fabric"``, ``"pytorch.tuner.lr_finder:_lr_find"``."""
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
    """``("pytorch_lightning", "fabric.wrappers")`` -> the module ``lightning_fabric.wrappers``, imported if need be."""
    return importlib.import_module(module_name(namespace, module))


def find(namespace: str, importing: Optional[ModuleSpec] = None) -> Optional[Namespace]:
    """The installed parts of a namespace, ``None`` if there are none. Imports nothing.

    Args:
        namespace: its name.
        importing: a module of it that is about to be imported.
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
    """The directory that ``"lightning_fabric"`` or ``"lightning.pytorch"`` is imported from, or has been, and the
    loader that reads from there. A directory without code does not count."""
    root, _, rest = package.partition(".")
    # Python's finder comes first. Finders of other tools are only called for packages that it does not find, such as
    # editable installations or single-file programs.
    others = [finder for finder in sys.meta_path if finder is not PathFinder and not _asks_others(finder)]
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
        # A search for "a.b" may import "a", so use only the finder that knows "a".
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
            continue  # raised by another tool's finder; the import will raise it
        if spec is not None and spec.origin is not None and spec.submodule_search_locations:
            return spec, finder
    return None, None


def _asks_others(finder: Any) -> bool:
    """Ours and wrapt's know nothing by themselves."""
    return type(finder).__module__.partition(".")[0] in ("wrapt", "lightning_patches")


def _version(root: str, directory: str, loader: Any) -> str:
    # The package's own version precedes its metadata: it describes the imported code, even from a source checkout or a
    # directory on PYTHONPATH, and reading it is cheap.
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
        return bytes(loader.get_data(path))  # of zipimport
