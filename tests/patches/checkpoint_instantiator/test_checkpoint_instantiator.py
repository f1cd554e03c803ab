import importlib.util
from typing import Any

import pytest

from tests.support.programs import Observations, Program, sees

needs_cli = pytest.mark.skipif(
    importlib.util.find_spec("jsonargparse") is None, reason="LightningCLI needs jsonargparse[signatures]"
)

PROGRAM = Program("checkpoint-instantiator", "2.6.5")


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [
        ("lightning", "2.3.0", "function"),
        ("pytorch-lightning", "2.6.5", "function"),
        ("lightning", "2.6.5", "datamodule"),
    ],
)
def test_function_named_in_the_file_is_not_called(distribution, version, case):
    stock, shim = (result.facts for result in PROGRAM.both(case, version, distribution=distribution))
    assert stock["imported"] and stock["called"] == ["build"], stock
    assert untouched(shim) and shim["loaded"][0].startswith("ValueError: The checkpoint asks for"), shim
    assert "lightning_patches.trust_instantiator('_named_in_file.build')" in shim["loaded"][0], shim


def untouched(observations):
    return not observations["imported"] and not observations["called"]


@needs_cli
def test_class_named_in_the_file_is_not_imported():
    stock, shim = (result.facts for result in PROGRAM.both("class"))
    assert stock["imported"] and untouched(shim), (stock, shim)
    assert shim["loaded"][0].startswith("ValueError: The checkpoint asks for the class '_named_in_file.Model'"), shim


def test_invalid_name_is_refused():
    stock, shim = (result.facts for result in PROGRAM.both("not a name", "2.4.0"))
    assert stock["loaded"][0].startswith("AttributeError"), stock
    assert untouched(shim) and shim["loaded"][0].startswith("ValueError: The checkpoint asks for"), shim


def test_trusted_function_is_called():
    assert PROGRAM.shim("trusted", "2.4.0").facts == {"loaded": ["Model"], "imported": True, "called": ["build"]}


MADE = ["Deeper", "Deeper.Nested", "Deeper.Nested", "Lazy", "Model"]
test_checkpoints_of_lightning_cli_load_as_on_stock = needs_cli(
    PROGRAM.unchanged("cli", on=("2.5.2", "2.6.5"), check=sees(lambda seen: seen["loaded"] == MADE))
)


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_other_releases_are_unchanged(version):
    shim = PROGRAM.shim("function", version, toggle="checkpoint-instantiator,strict").facts
    assert untouched(shim) and "lightning_patches" not in shim["loaded"][0], shim


def _refused(observations: Observations) -> Any:
    """Return if anything was imported or called, and the type of the error."""
    return [{**rank, "loaded": [text.partition(":")[0] for text in rank["loaded"]]} for rank in observations]


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["imported"] or bool(seen["called"])),
    "function",
    "datamodule",
    observed=_refused,
    note="the words of the error, which name the way out of each",
)
