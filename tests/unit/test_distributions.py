"""Finding the installed Lightnings: both namespaces are distinguished, and neither is imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Optional

import pytest

from lightning_patches.engine.distributions import find, module_name
from lightning_patches.known.installed import find_installed
from tests.support import variants  # noqa: F401  puts scripts/ on the path
from tests.unit.fakes import World, make_device


def found(namespace: str) -> dict[str, tuple[str, str]]:
    """Return distribution and version of each part."""
    installed = find(namespace)
    return {} if installed is None else {k: (p.distribution, p.version) for k, p in installed.parts.items()}


LIGHTNING_2_3_3 = {"pytorch": ("lightning", "2.3.3"), "fabric": ("lightning", "2.3.3")}
PYTORCH_2_4_0 = {"pytorch": ("pytorch-lightning", "2.4.0"), "fabric": ("pytorch-lightning", "2.4.0")}
FABRIC_2_1_0 = ("lightning-fabric", "2.1.0")


@pytest.mark.parametrize(
    ("installed", "lightning", "mirror"),
    [
        ([], {}, {}),
        ([("2.3.3", "lightning")], LIGHTNING_2_3_3, {}),
        ([("2.3.3", "lightning"), ("2.4.0", "pytorch_lightning")], LIGHTNING_2_3_3, PYTORCH_2_4_0),
        ([("2.1.0", "pytorch_lightning", "fabric")], {}, {"fabric": FABRIC_2_1_0}),
        (
            [("2.4.0", "pytorch_lightning", "pytorch"), ("2.1.0", "pytorch_lightning", "fabric")],
            {},
            {**PYTORCH_2_4_0, "fabric": FABRIC_2_1_0},
        ),
    ],
    ids=["none", "one", "both", "fabric alone", "another fabric"],
)
def test_both_namespaces_are_found(world: World, installed: Any, lightning: Any, mirror: Any) -> None:
    for version, namespace, *parts in installed:
        world.install(version, namespace, **({"parts": parts} if parts else {}))
    assert (found("lightning"), found("pytorch_lightning")) == (lightning, mirror)


def test_finding_imports_nothing(world: World) -> None:
    world.install("2.3.3", "lightning")
    for name in ("lightning/__init__.py", "lightning/pytorch/__init__.py"):
        (world.root / name).write_text("raise SystemExit('imported')\n")
    before = set(sys.modules)
    assert found("lightning")["pytorch"] == ("lightning", "2.3.3")
    assert set(sys.modules) == before


def test_other_module_or_package_with_the_name_is_not_lightning(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.root / "lightning.py").touch()
    assert find("lightning") is None
    monkeypatch.setitem(sys.modules, "lightning", ModuleType("lightning"))  # imported, but not a package
    assert find("lightning") is None
    monkeypatch.delitem(sys.modules, "lightning")
    (world.root / "lightning" / "pytorch").mkdir(parents=True)  # what `pip uninstall` may leave behind
    assert find("lightning") is None
    (world.root / "lightning" / "__init__.py").touch()
    assert find("lightning") is None


def test_imported_package_precedes_the_installed_one(world: World, tmp_path: Path) -> None:
    world.install("2.3.3", "lightning")
    world.load("pytorch")
    elsewhere = World.__new__(World)
    elsewhere.root = tmp_path / "first"
    elsewhere.install("2.5.0", "lightning")
    sys.path.insert(0, str(elsewhere.root))
    try:
        assert found("lightning")["pytorch"][1] == "2.3.3"
    finally:
        sys.path.remove(str(elsewhere.root))


@pytest.mark.parametrize("version", ["2.4.0.dev0", "2.2.5+cu118", "2.3.0rc1", "2.0.9.post0", "not a version"])
def test_version_is_that_of_the_package(world: World, version: str) -> None:
    world.install(version, "lightning")
    assert found("lightning")["pytorch"][1] == version


def test_source_checkout_has_a_version_file(world: World) -> None:
    world.install("", "lightning")
    (world.root / "version.info").write_text("2.6.2\n")
    assert found("lightning")["pytorch"][1] == "2.6.2"


@pytest.mark.parametrize(
    ("own", "metadata", "version"), [("2.3.3", "2.9.9", "2.3.3"), ("", "2.1.4", "2.1.4"), ("", None, "unknown")]
)
def test_version_is_read_from_metadata_when_the_package_has_none(world, own, metadata, version):
    world.install(own, "lightning")
    if metadata is not None:
        add_metadata(world, f"Metadata-Version: 2.1\nName: lightning\nVersion: {metadata}\n".encode())
    assert found("lightning")["pytorch"][1] == version


@pytest.mark.parametrize(
    ("namespace", "module", "expected"),
    [
        ("lightning", "pytorch.tuner.lr_finder", "lightning.pytorch.tuner.lr_finder"),
        ("lightning", "fabric", "lightning.fabric"),
        ("pytorch_lightning", "pytorch.tuner.lr_finder", "pytorch_lightning.tuner.lr_finder"),
        ("pytorch_lightning", "fabric.wrappers", "lightning_fabric.wrappers"),
        ("pytorch_lightning", "pytorch", "pytorch_lightning"),
    ],
)
def test_module_name_follows_the_namespace(namespace: str, module: str, expected: str) -> None:
    assert module_name(namespace, module) == expected


@pytest.mark.parametrize("make", [os.mkfifo, make_device, lambda path: path.write_text("2.3.3".rjust(2 << 10))])
def test_version_info_that_is_no_short_regular_file_is_not_read(world: World, make: Callable[[Path], None]) -> None:
    world.install("", "lightning")
    make(world.root / "lightning" / "version.info")
    assert found("lightning")["pytorch"] == ("lightning", "unknown")
    add_metadata(world, b"Metadata-Version: 2.1\nName: lightning\nVersion: 2.3.3\n")
    assert found("lightning")["pytorch"] == ("lightning", "2.3.3")


@pytest.mark.parametrize("metadata", [b"Name: lightning\nVersion: 2.3.3\nAuthor: \xe9\n", b"Name: lightning\n", None])
def test_version_is_unknown_when_metadata_are_broken(world: World, metadata: Optional[bytes]) -> None:
    world.install("", "lightning")
    add_metadata(world, metadata)
    assert found("lightning")["pytorch"] == ("lightning", "unknown")
    (entry,) = find_installed()
    assert (entry.version, entry.note) == ("unknown", "")


def add_metadata(world: World, content: Optional[bytes]) -> None:
    information = world.root / "lightning-2.3.3.dist-info"
    information.mkdir()
    (information / "direct_url.json").write_bytes(b'{"dir_info": "\xe9"}')
    if content is not None:
        (information / "METADATA").write_bytes(content)
