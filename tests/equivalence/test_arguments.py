"""LightningCLI accepts the same arguments with the patches: jsonargparse resolves ``**kwargs`` from method sources."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import variants
from tests.support.run import execute

PROGRAM = """
import importlib, inspect, json, pkgutil, sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "True":
    import lightning_patches
from jsonargparse import ArgumentParser
found = {}
for name in ("pytorch_lightning.strategies", "pytorch_lightning.callbacks", "pytorch_lightning.loggers",
             "lightning_fabric.strategies"):
    package = importlib.import_module(name)
    for _, module, _ in pkgutil.walk_packages(package.__path__, f"{name}."):
        for label, value in list(vars(importlib.import_module(module)).items()):
            if inspect.isclass(value) and value.__module__ == module:
                try:
                    taken = sorted(ArgumentParser().add_class_arguments(value, fail_untyped=False))
                except Exception as error:
                    taken = type(error).__name__
                found[f"{module}.{label}"] = taken
print(json.dumps(found))
"""


def arguments(version: str, shim: bool) -> dict[str, list[str]]:
    variables = {
        **variants.environment_of(variants.Variant("pytorch-lightning", version, shim)),
        "LIGHTNING_PATCHES": "all,quiet",
    }
    status, output = execute([sys.executable, "-c", PROGRAM, str(shim)], variables, 240)
    assert status == 0, output
    found: dict[str, list[str]] = json.loads(output.splitlines()[-1])
    return found


@pytest.mark.parametrize("version", ["2.0.9", "2.2.5", "2.6.6"])
def test_class_accepts_the_same_arguments_with_all_patches(version: str) -> None:
    stock, patched = arguments(version, shim=False), arguments(version, shim=True)
    assert "find_unused_parameters" in stock["pytorch_lightning.strategies.ddp.DDPStrategy"]
    assert len(stock) > 60
    assert {name: value for name, value in patched.items() if value != stock[name]} == {}
