"""LightningCLI of 1.6.0 and 1.6.1 asks jsonargparse for a function, and is given a package."""

import pytest

from tests.support.variants import Variant, run


@pytest.mark.parametrize("version", ["1.6.0", "1.6.1"])
def test_command_line_starts(version):
    stock = run("command_line_descriptions", Variant("pytorch-lightning", version), fresh=True)
    assert not stock.ok and "'module' object is not callable" in stock.output, stock
    shim = run("command_line_descriptions", Variant("pytorch-lightning", version, shim=True), fresh=True)
    assert shim.ok, shim
    assert shim.observations == [{"lr": (0.2).hex(), "steps": 4}]
