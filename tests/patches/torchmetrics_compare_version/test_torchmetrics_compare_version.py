"""Lightning 1.7 asks torchmetrics for a private helper that it no longer has."""

import pytest

from tests.support.variants import Variant, run

MESSAGE = "cannot import name '_compare_version' from 'torchmetrics.utilities.imports'"


@pytest.mark.parametrize("version", ["1.7.0", "1.7.7"])
def test_lightning_is_imported_without_leftovers(version):
    stock = run("torchmetrics_compare_version", Variant("pytorch-lightning", version), fresh=True)
    assert not stock.ok and MESSAGE in stock.output, stock
    shim = run("torchmetrics_compare_version", Variant("pytorch-lightning", version, shim=True), fresh=True)
    assert shim.ok, shim
    assert shim.observations == [{"steps": 4, "rich": True, "left_behind": False}]
