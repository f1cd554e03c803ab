"""Fake Lightning packages: a few small files under Lightning's names.

``World`` puts them on ``sys.path`` of this process and removes them completely afterwards. ``python`` runs a program in
a separate process, for tests that depend on the state of the interpreter.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Iterable, Optional, Union

from lightning_patches.engine import distributions, fingerprints, gate, hooks, toggle
from lightning_patches.engine.distributions import Namespace
from lightning_patches.engine.patcher import Patcher
from lightning_patches.patch import Impact, Patch, Target, Upstream

ROOT = Path(__file__).resolve().parents[2]

AFFECTED = '''\
"""Code with the bug."""


def compute(value: int, scale: int = 2) -> int:
    """Scale a value."""
    return value * scale


def other() -> str:
    return "other"


class Base:
    def method(self, x: int) -> str:
        """A method."""
        return f"base {x}"

    @staticmethod
    def static(x: int) -> str:
        return f"static {x}"

    @classmethod
    def klass(cls, x: int) -> str:
        return f"{cls.__name__} {x}"

    @property
    def prop(self) -> str:
        """A property."""
        return "prop"

    @prop.setter
    def prop(self, value: str) -> None:
        self.set_to = value


class Child(Base):
    pass
'''
FIXED = AFFECTED.replace("return value * scale", "return value * scale + 0").replace('f"base {x}"', '"base " + str(x)')
IMPORTER = "from {package}.subject import compute\nfrom {package}.subject import compute as again\n"

RELEASES = {"2.2.0": AFFECTED, "2.2.5": AFFECTED, "2.3.3": AFFECTED, "2.4.0": FIXED, "2.5.0": FIXED}
FUNCTION = "pytorch.subject:compute"
METHOD = "pytorch.subject:Base.method"


def times_ten(original: Any, namespace: str) -> Any:
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs) * 10

    return replacement


def renamed(original: Any, namespace: str) -> Any:
    def replacement(self: Any, other: int = 2) -> Any:
        return original(self, other)

    return replacement


def plus(mark: str) -> Any:
    """Return a builder whose replacement adds ``mark`` to the string that the original returns."""

    def build(original: Any, namespace: str) -> Any:
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return original(*args, **kwargs) + mark

        return replacement

    return build


def added(original: Any, namespace: str) -> Any:
    """Build a method that the class lacks."""

    def added(self: Any) -> str:
        return f"added in {namespace}"

    return added


def broken(original: Any, namespace: str) -> Any:
    raise RuntimeError("this builder is broken")


def toy(*targets: Union[Target, str], name: str = "toy", fixed_in: Optional[str] = "2.4.0", **fields: Any) -> Patch:
    """Return a patch of the stand-ins. A target given as a string multiplies the result by ten."""
    whole = tuple(Target(one, times_ten) if isinstance(one, str) else one for one in targets or (FUNCTION,))
    options: dict[str, Any] = {"affected": (">=2.2.0,<2.4.0",), "group": "crash", "title": name, **fields}
    return Patch(
        name=name, targets=whole, upstream=options.pop("upstream", Upstream(issues=(1,), fixed_in=fixed_in)),
        impact=Impact("It breaks.", ("broken",)), **options,
    )  # fmt: skip


def write_lightning(
    root: Path,
    version: str = "2.3.3",
    namespace: str = "lightning",
    source: str = AFFECTED,
    parts: Iterable[str] = ("pytorch", "fabric"),
) -> None:
    """Write a release of a namespace into ``root``; ``version`` may be "" for none."""
    for part in parts:
        package = distributions.PARTS[namespace][part]
        directory = root.joinpath(*package.split("."))
        directory.mkdir(parents=True, exist_ok=True)
        top = root / package.partition(".")[0]
        (top / "__init__.py").touch()
        (directory / "__init__.py").touch()
        (directory / "subject.py").write_text(source)
        (directory / "importer.py").write_text(IMPORTER.format(package=package))
        if version:
            (top / "version.info").write_text(version + "\n")
    importlib.invalidate_caches()


def fingerprints_of(releases: dict[str, str], locations: Iterable[str]) -> dict[str, Any]:
    """Return the data of ``_fingerprints.py`` for releases with the given ``subject.py`` in every part."""
    sources = list(releases.values())
    file = _row([fingerprints.file_digest(source.encode()) for source in sources])
    functions = {}
    for location in locations:
        digests = (fingerprints.function_digest(source, location.partition(":")[2]) for source in sources)
        functions[location] = _row([digest or fingerprints.ABSENT for digest in digests])
    files = {namespace: {"pytorch.subject": file, "fabric.subject": file} for namespace in distributions.PARTS}
    return {"releases": list(releases), "files": files, "functions": functions}


def _row(digests: list[str]) -> str:
    spans = {digest: [f"{i}-{i}" for i, each in enumerate(digests) if each == digest] for digest in digests}
    return ", ".join(" ".join([digest, *numbers]) for digest, numbers in spans.items())


class World:
    """A process with stand-ins for Lightning on its path.

    Args:
        root: where they are written.
        monkeypatch: restores the process.
    """

    def __init__(self, root: Path, monkeypatch: Any) -> None:
        self.root = root
        self._monkeypatch = monkeypatch
        self._patchers: list[Patcher] = []
        self.leave()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.syspath_prepend(str(root))
        for variable in ("RANK", "LOCAL_RANK", "SLURM_PROCID"):
            monkeypatch.delenv(variable, raising=False)

    def install(self, version: str = "2.3.3", namespace: str = "lightning", **how: Any) -> Namespace:
        """Write a release, and return the namespace that the shim finds."""
        write_lightning(self.root, version, namespace, **how)
        found = distributions.find(namespace)
        assert found is not None
        return found

    def know(self, *patches: Patch, releases: Optional[dict[str, str]] = None) -> None:
        """Replace the fingerprint data by that of ``releases``."""
        locations = {location for patch in patches for location in patch.locations}
        data = fingerprints_of(RELEASES if releases is None else releases, locations)
        self._monkeypatch.setattr(fingerprints, "_data", lambda: data)
        forget_data()

    def patcher(self, *patches: Patch) -> Patcher:
        """Return a patcher for these patches, which is deactivated at the end."""
        self.know(*patches)
        self._patchers.append(Patcher(patches))
        return self._patchers[-1]

    def activate(self, *patches: Patch, spec: str = "all") -> Patcher:
        patcher = self.patcher(*patches)
        patcher.activate(toggle.parse(spec, patches))
        return patcher

    def load(self, module: str = "pytorch.subject", namespace: str = "lightning") -> ModuleType:
        """Import a module as a user's program would."""
        return importlib.import_module(distributions.module_name(namespace, module))

    def leave(self) -> None:
        for patcher in self._patchers:
            patcher.deactivate()
        hooks.remove()
        forget_lightning()
        forget_data()


def forget_data() -> None:
    """Clear the caches of data read from other fingerprints."""
    for read in (gate.affected_releases, fingerprints._with_file, fingerprints._with_function):
        read.cache_clear()


def forget_lightning() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in distributions.ROOT_PACKAGES]:
        del sys.modules[name]
    importlib.invalidate_caches()


def use_catalogue(*patches: Patch, releases: Optional[dict[str, str]] = None) -> None:
    """In a program of ``python``: replace the catalogue and the known releases."""
    from lightning_patches import patches as catalogue

    locations = {location for patch in patches for location in patch.locations}
    data = fingerprints_of(RELEASES if releases is None else releases, locations)
    fingerprints._data = lambda: data  # type: ignore[assignment]
    forget_data()
    catalogue.index = catalogue.all_patches = lambda: patches  # type: ignore[assignment]


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_gigabyte(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 30)
