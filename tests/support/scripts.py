"""Import the programs in ``scripts/``, whose names have no ``.py``."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType

from tests.support.variants import ROOT


def load(name: str) -> ModuleType:
    """Import ``scripts/NAME`` anew."""
    loader = SourceFileLoader(f"script_{name}", str(ROOT / "scripts" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses read this
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return module
