"""Pull request 20081: Lightning 1.5 to 1.9 cannot be imported where setuptools has no pkg_resources."""

import pytest

from tests.support.variants import Variant, run

SCENARIO = "import_without_pkg_resources_1x"
VERSIONS = ["1.5.10", "1.6.5", "1.7.7", "1.8.6", "1.9.5"]


@pytest.mark.parametrize("version", VERSIONS)
def test_lightning_is_imported_and_trains(version):
    stock = run(SCENARIO, Variant("pytorch-lightning", version), fresh=True)
    assert not stock.ok and "No module named 'pkg_resources'" in stock.output, stock
    shim = run(SCENARIO, Variant("pytorch-lightning", version, shim=True), fresh=True)
    assert shim.ok, shim
    assert shim.observations == [{"steps": 4, "others_have": []}]


@pytest.mark.parametrize("version", ["1.6.5", "1.9.5"])
def test_installed_pkg_resources_is_used(version):
    shim = run(SCENARIO, Variant("pytorch-lightning", version, shim=True), case="there", fresh=True)
    assert shim.ok, shim
    assert shim.observations == [{"steps": 4, "others_have": ["pkg_resources"]}]
