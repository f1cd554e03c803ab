"""PR 21246: LightningCLI in subclass mode refuses every checkpoint that it wrote itself."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

PARSING = ['error: Parser key "model":', "Parsing of ckpt_path hyperparameters failed!"]
LOST = {"error": PARSING, "imported": False, "made": None, "values": None}
MADE = {"subclass": ("Deeper", {"width": 5, "depth": 3}), "same": ("Model", {"width": 5})}


def seen(version, case, shim=False, toggle=None):
    result = run("cli_checkpoint_of_subclass", Variant("lightning", version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", MADE)
@pytest.mark.parametrize("version", ["2.5.5", "2.5.6"])
def test_model_of_the_checkpoint_is_created(version, case):
    assert seen(version, case) == LOST
    shim = seen(version, case, shim=True)
    assert (shim["error"], shim["made"], shim["values"]) == (None, *MADE[case])


@pytest.mark.parametrize("toggle", [None, "default,security"])
def test_no_module_is_imported_that_the_file_names(toggle):
    assert seen("2.5.6", "unknown") == LOST
    shim = seen("2.5.6", "unknown", shim=True, toggle=toggle)
    assert "'_named_in_file.Model', and that is not a subclass of Model that has been imported" in shim["error"]
    assert not shim["imported"]


@pytest.mark.parametrize("case", ["plain", "empty"])
def test_other_checkpoints_are_unchanged(case):
    stock = seen("2.5.6", case)
    assert stock["made"] == "Model"
    assert seen("2.5.6", case, shim=True) == stock


def test_other_releases_are_unchanged():
    for version in ("2.5.4", "2.6.0"):
        assert seen(version, "subclass") == seen(version, "subclass", shim=True)


PROOFS = tuple(Proof("cli-checkpoint-of-subclass", sees(lambda seen: seen["error"] == PARSING), case=c) for c in MADE)
