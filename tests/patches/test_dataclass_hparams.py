"""PR 21051: save_hyperparameters in a dataclass with a field that is made later."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run


def observed(arm, case=""):
    result = run("dataclass_hparams", arm, case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.5.2")])
def test_fields_of_init_are_saved(distribution, version):
    stock = run("dataclass_hparams", Arm(distribution, version))
    assert not stock.ok and "object has no attribute 'layer'" in stock.output, stock

    shim = observed(Arm(distribution, version, shim=True))
    assert shim["names"] == shim["initial"] == ["rate", "width"]
    assert shim["left_behind"] == [] and shim["width"] == 3, shim


def test_official_fix_saves_the_same():
    official = observed(Arm("lightning", "2.5.3"))
    assert official["names"] == ["rate", "width"]
    assert observed(Arm("lightning", "2.5.2", shim=True)) == official


def test_nothing_changes_where_the_fields_are_set():
    assert observed(Arm("lightning", "2.5.2", shim=True), "set") == observed(Arm("lightning", "2.5.2"), "set")


PROOFS = (Proof("dataclass-hparams", ends_with("object has no attribute 'layer'")),)
