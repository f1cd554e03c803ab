import importlib.util
from typing import Any

import pytest

from tests.equivalence.proof import Observations, Proof, sees
from tests.support.variants import Variant, run

needs_cli = pytest.mark.skipif(
    importlib.util.find_spec("jsonargparse") is None, reason="LightningCLI needs jsonargparse[signatures]"
)


def observed(variant, case, **options):
    result = run("checkpoint_instantiator", variant, case, **options)
    assert result.ok, result
    return result.observations[0]


def untouched(observations):
    return not observations["imported"] and not observations["called"]


@pytest.mark.parametrize(
    ("distribution", "version", "case"),
    [
        ("lightning", "2.3.0", "function"),
        ("pytorch-lightning", "2.6.5", "function"),
        ("lightning", "2.6.5", "datamodule"),
    ],
)
def test_function_named_in_the_file_is_not_called(distribution, version, case):
    stock = observed(Variant(distribution, version), case)
    assert stock["imported"] and stock["called"] == ["build"], stock

    shim = observed(Variant(distribution, version, shim=True), case)
    assert untouched(shim), shim
    assert shim["loaded"][0].startswith("ValueError: The checkpoint asks for"), shim
    assert "lightning_patches.trust_instantiator('_named_in_file.build')" in shim["loaded"][0], shim

    official = observed(Variant(distribution, "2.6.6"), case)
    assert untouched(official) and official["loaded"][0].startswith("ValueError: "), official


@needs_cli
def test_class_named_in_the_file_is_not_imported():
    variant = Variant("lightning", "2.6.5")
    stock = observed(variant, "class")
    assert stock["imported"], stock

    shim = observed(Variant(variant.distribution, variant.version, shim=True), "class")
    assert untouched(shim), shim
    assert shim["loaded"][0].startswith("ValueError: The checkpoint asks for the class '_named_in_file.Model'"), shim


def test_invalid_name_is_refused():
    stock = observed(Variant("lightning", "2.4.0"), "not a name")
    assert stock["loaded"][0].startswith("AttributeError"), stock
    shim = observed(Variant("lightning", "2.4.0", shim=True), "not a name")
    assert untouched(shim) and shim["loaded"][0].startswith("ValueError: The checkpoint asks for"), shim


def test_trusted_function_is_called():
    shim = observed(Variant("lightning", "2.4.0", shim=True), "trusted")
    assert shim == {"loaded": ["Model"], "imported": True, "called": ["build"]}


@needs_cli
@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.5.2"), ("lightning", "2.6.5")])
def test_checkpoints_of_lightning_cli_load_as_on_stock(distribution, version):
    stock = observed(Variant(distribution, version), "cli")
    shim = observed(Variant(distribution, version, shim=True), "cli")
    assert shim == stock
    assert shim["loaded"] == ["Deeper", "Deeper.Nested", "Deeper.Nested", "Lazy", "Model"], shim


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
def test_other_releases_are_unchanged(version):
    shim = observed(Variant("lightning", version, shim=True), "function", toggle="checkpoint-instantiator,strict")
    assert untouched(shim), shim
    assert "lightning_patches" not in shim["loaded"][0], shim


def _refused(observations: Observations) -> Any:
    """Return if anything was imported or called, and the type of the error."""
    return [{**rank, "loaded": [text.partition(":")[0] for text in rank["loaded"]]} for rank in observations]


PROOFS = (
    Proof(
        "checkpoint-instantiator",
        sees(lambda seen: seen["imported"] or bool(seen["called"])),
        case="function",
        observed=_refused,
        note="the words of the error, which name the way out of each",
    ),
    Proof(
        "checkpoint-instantiator",
        sees(lambda seen: seen["imported"] or bool(seen["called"])),
        case="datamodule",
        observed=_refused,
        note="the words of the error, which name the way out of each",
    ),
)
