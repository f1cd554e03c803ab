"""PR 17731: what is set on a Fabric module does not reach the model. The patch only says so."""

import pytest

from tests.support.arms import Arm, run


def seen(version, case, shim=True, toggle=None):
    result = run("fabric_attributes_reach_model", Arm("pytorch-lightning", version, shim), case, toggle=toggle)
    assert result.ok, result
    (observed,) = result.observations
    return observed


@pytest.mark.parametrize("version", ["2.0.0", "2.0.9"])
def test_says_that_the_model_keeps_its_own(version):
    stock, warned = seen(version, "known", shim=False), seen(version, "known")
    (warning,) = warned.pop("warnings")
    assert "model.module" in warning and "Model, which keeps its own scale" in warning
    stock.pop("warnings")
    assert stock == warned


def test_calls_no_property_of_the_model():
    stock, warned = seen("2.0.9", "secret", shim=False), seen("2.0.9", "secret")
    assert warned["warnings"]
    assert (warned["calls"], warned["result"]) == (stock["calls"], stock["result"])


@pytest.mark.parametrize("case", ["new", "own", "apart"])
def test_is_silent_where_the_model_has_none(case):
    """Or where the wrapper has one as well, and on a release with the fix."""
    assert seen("2.0.9", case) == seen("2.0.9", case, shim=False)
    assert seen("2.1.0", "known")["warnings"] == []


def test_is_silent_where_it_is_mended():
    assert seen("2.0.9", "known", toggle="default,fabric-attributes-reach-model")["warnings"] == []
