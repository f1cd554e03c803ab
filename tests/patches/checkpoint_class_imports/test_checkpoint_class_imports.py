import importlib.util
from typing import Any

import pytest

from tests.support.programs import Observations, Program, sees

PROGRAM = Program("checkpoint-class-imports", "2.6.6", toggle="security")
NEWEST = "2.6.6"
REFUSED = "ValueError: The checkpoint's hyperparameters name '_named_in_file', a module that has not been imported"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jsonargparse") is None, reason="LightningCLI needs jsonargparse[signatures]"
)
SHOWN = [
    ("lightning", NEWEST, "command line"),
    ("lightning", NEWEST, "part of it"),
    ("lightning", NEWEST, "loaded"),
    ("lightning", NEWEST, "loaded, in other words"),
    ("lightning", NEWEST, "loaded, or a text"),
    ("pytorch-lightning", "2.3.0", "loaded, init_args"),
    ("pytorch-lightning", "2.3.0", "loaded, a class that is none"),
    ("lightning", NEWEST, "loaded, a class that is none"),
]


@pytest.mark.parametrize(("distribution", "version", "case"), SHOWN)
def test_module_named_in_the_file_is_not_imported(distribution: str, version: str, case: str) -> None:
    stock = PROGRAM.stock(case, version, distribution=distribution).facts
    assert stock["imported"], stock
    shim = PROGRAM.shim(case, version, distribution=distribution).facts
    assert not shim["imported"], shim
    assert shim["result"].startswith(REFUSED), shim


@pytest.mark.parametrize(
    ("version", "case", "result"),
    [
        ("2.6.0", "command line, imported", "Deeper with Linear"),
        (NEWEST, "command line, imported", "Deeper with Linear"),
        (NEWEST, "part of it, imported", "Model with Wide"),
        ("2.3.0", "loaded, imported", "Model with Wide"),
        (NEWEST, "loaded, imported", "Model with Wide"),
    ],
)
def test_imported_classes_are_created_as_on_stock(version: str, case: str, result: str) -> None:
    stock, shim = (result.facts for result in PROGRAM.both(case, version))
    assert stock == shim == {"result": result, "imported": False}


@pytest.mark.parametrize("version", ["2.3.0", NEWEST])
def test_checkpoints_load_by_default(version: str) -> None:
    case = "loaded, a part of it"
    stock = PROGRAM.stock(case, version).facts
    assert stock["result"] == "Model with Narrow"
    assert PROGRAM.shim(case, version, toggle="default").facts == stock
    refused = PROGRAM.shim(case, version).facts
    assert "lightning_patches.trust_module('_part_in_file')" in refused["result"], refused
    assert PROGRAM.shim("loaded, trusted", version).facts == stock


@pytest.mark.parametrize("case", ["constructor", "text", "wrong"])
def test_other_hyperparameters_are_read_as_on_stock(case: str) -> None:
    """A constructor may import a module, a string need not name one, and other errors are unchanged."""
    stock, shim = (result.facts for result in PROGRAM.both(case))
    assert stock == shim, shim
    assert stock["imported"] == (case == "constructor"), stock
    assert stock["result"].startswith("ArgumentError" if case == "wrong" else "Model with Linear"), stock


def _refused(observations: Observations) -> Any:
    """Return if the module was imported. Loading always ends with an error."""
    return [rank["imported"] for rank in observations]


PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: seen["imported"]),
        case=case,
        since=since,
        observed=_refused,
        recommended=f"{case}, imported",
        note="how loading ends: with an error, since nothing in the module is of use",
    )
    for case, since in (("command line", "2.6.0"), ("part of it", "2.5.5"), ("loaded", ""))
)
