"""What Lightning 1.x asks of ``pkg_resources``: ``pytorch/utilities/imports.py`` up to 1.7, and each package."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lightning_patches.patch import Impact, Patch, Target, Upstream
from lightning_patches.patches.imports import _statements


def _answer(name: str, found: Any) -> Any:
    if name != "pkg_resources" or found is not None:
        return None
    from importlib import metadata

    return SimpleNamespace(
        DistributionNotFound=metadata.PackageNotFoundError,
        declare_namespace=_declare_nothing,
        get_distribution=metadata.distribution,
        require=_require,
    )


def _declare_nothing(package: str) -> None:
    """Lightning's packages have code of their own, and import without being declared."""


def _require(requirement: str) -> None:
    """Raise, as ``pkg_resources.require`` does, if a requirement is not met.

    Raises:
        importlib.metadata.PackageNotFoundError: it is not installed.
        ValueError: it is, in another version.
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


def _target(module: str, statements: bool = False, **releases: str) -> Target:
    build = _statements.answered(module, _answer, statements)
    return Target(f"{module}:__import__", build, adds=True, early=True, **releases)


PATCH = Patch(
    name="import-1x-without-pkg-resources",
    added="0.2.0",
    title="Lightning 1.5 to 1.9 can be imported where setuptools has no pkg_resources",
    group="compat",
    for_import=True,
    affected=(),
    affected_1x=(">=1.5.0,<2.0.0",),
    targets=(
        _target("fabric", since="1.9.0"),
        _target("lite", since="1.8.0", before="1.9.0"),
        _target("pytorch"),
        _target("pytorch.utilities.imports", statements=True, before="1.8.0"),
    ),
    upstream=Upstream(),
    after=("import-without-pkg-resources",),
    impact=Impact(
        "import pytorch_lightning fails where setuptools is 82 or newer or is not installed, as in a new environment "
        "of Python 3.12 and later.",
        ("No module named 'pkg_resources'",),
        error="ModuleNotFoundError: No module named 'pkg_resources'",
    ),
    note="Where pkg_resources can be imported it is imported and asked as before; no other module sees ours. Works "
    "only if lightning_patches comes before the first import of Lightning. For 2.0 to 2.3 see "
    "import-without-pkg-resources.",
    relied_on="A program that has pkg_resources finds there what Lightning declares, as before.",
    relied_on_tests=(
        "tests/patches/test_import_1x_without_pkg_resources.py::test_the_real_one_is_asked_where_it_is_there",
    ),
)
