"""PR 21051: save_hyperparameters in a dataclass with a field that is made later."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run


def observed(variant, case=""):
    result = run("dataclass_hparams", variant, case)
    assert result.ok, result
    return result.observations[0]


def test_dataclass_with_set_fields_is_unchanged():
    assert observed(Variant("lightning", "2.5.2", shim=True), "set") == observed(Variant("lightning", "2.5.2"), "set")


def _fields_of_init(seen):
    return seen["names"] == seen["initial"] == ["rate", "width"] and seen["left_behind"] == [] and seen["width"] == 3


PROOFS = (Proof("dataclass-hparams", ends_with("object has no attribute 'layer'"), right=sees(_fields_of_init)),)
