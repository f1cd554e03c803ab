"""Lightning can be imported with a setuptools that has no pkg_resources.

Up to 2.3, each package of Lightning calls pkg_resources. Up to 1.7, ``pytorch/utilities/imports.py`` also imports from
it.
"""

from __future__ import annotations

import builtins
import sys
from types import FrameType, SimpleNamespace
from typing import Any, Callable

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.imports import _statements


def _import_statement_apart(original: None, namespace: str) -> Callable[..., Any]:
    # A call of __import__ finds this function in the module's names; import statements do not. So only the call that
    # declares the package as a namespace package uses it, and sys.modules is not changed.
    def import_module(name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return _import_as(sys._getframe(1), name, args, kwargs)
        except Exception:  # missing, or too old for this Python
            if name != "pkg_resources":
                raise
            return SimpleNamespace(declare_namespace=_declare_nothing)

    return import_module


def _import_as(caller: FrameType, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Import a module as if Lightning's line imported it.

    pkg_resources issues a deprecation warning that names its importer. The call is evaluated with Lightning's file
    name, line and globals, so that the warning still names Lightning.
    """
    source = "\n" * (caller.f_lineno - 1) + "__import__(name, *args, **kwargs)"
    call = compile(source, caller.f_code.co_filename, "eval")
    names = {"__import__": builtins.__import__, "name": name, "args": args, "kwargs": kwargs}
    return eval(call, caller.f_globals, names)


def _declare_nothing(package: str) -> None:
    """Do nothing: Lightning's packages work without the namespace declaration, which 2.4.0 removed."""


def _answer(name: str, found: Any) -> Any:
    if name != "pkg_resources" or found is not None:
        return None
    from importlib import metadata

    missing = metadata.PackageNotFoundError
    return SimpleNamespace(DistributionNotFound=missing, get_distribution=metadata.distribution, require=_require)


def _require(requirement: str) -> None:
    """Raise if a requirement is not met, as ``pkg_resources.require`` does.

    Raises:
        importlib.metadata.PackageNotFoundError: the package is not installed.
        ValueError: the package is installed in another version.
    """
    from importlib import metadata

    from packaging.requirements import Requirement

    wanted = Requirement(requirement)
    version = metadata.version(wanted.name)
    if not wanted.specifier.contains(version, prereleases=True):
        raise ValueError(f"{wanted.name} {version} is installed but {requirement} is required")
    for extra in wanted.extras:
        for one in map(Requirement, metadata.requires(wanted.name) or ()):
            if one.marker and "extra" in str(one.marker) and one.marker.evaluate({"extra": extra}):
                _require(f"{one.name}{one.specifier}")


PATCH = Patch(
    group="compat",
    affected=(">=1.5.0,<1.8.0", ">=1.8.0,<2.4.0"),
    only_with=("setuptools>=82",),
    targets=(
        Target("fabric:__import__", _import_statement_apart, adds=True, early=True, since="1.9.0"),
        Target("lite:__import__", _import_statement_apart, adds=True, early=True, since="1.8.0", before="1.9.0"),
        Target("pytorch:__import__", _import_statement_apart, adds=True, early=True),
        _statements.answered("pytorch.utilities.imports", _answer, before="1.8.0"),
    ),
    upstream=Upstream(pull_requests=(20081,), fixed_in="2.4.0"),
    impact=Impact(
        "import lightning fails if setuptools is 82 or newer or is not installed, as in a new environment of Python "
        "3.12 and later.",
        ("No module named 'pkg_resources'",),
        error="ModuleNotFoundError: No module named 'pkg_resources'",
    ),
    note="Import lightning_patches before Lightning. If pkg_resources can be imported, it is imported and "
    "called as without the patch, so that its namespace packages are declared. The patch also works if "
    "pkg_resources is installed but too old for your Python.",
)
