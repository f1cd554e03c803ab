"""A resumed EarlyStopping has the patience of the checkpoint instead of the program's. The patch only warns."""

import pytest

from tests.support.variants import Variant, run


def seen(version, case, shim=True, toggle=None):
    distribution = "pytorch-lightning" if version < "2.1" else "lightning"
    result = run("early_stopping_patience", Variant(distribution, version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_patience_of_the_checkpoint_causes_one_warning(version):
    warned = seen(version, "longer")
    (warning,) = warned.pop("warnings")
    assert "EarlyStopping has the patience of the checkpoint, 3, and not the 8 that the program gives." in warning
    assert warned["patience"] == seen(version, "longer", shim=False)["patience"] == 3


@pytest.mark.parametrize("case", ["same", "fresh"])
def test_warning_is_absent_if_the_patience_is_the_same(case):
    assert seen("2.6.6", case)["warnings"] == []


def test_warning_is_absent_if_the_opt_in_patch_is_selected():
    assert seen("2.6.6", "longer", toggle="default,early-stopping-patience")["warnings"] == []
