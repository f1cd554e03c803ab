"""Issue 19596: a part that another module creates in its __init__ has that module's hyperparameters."""

import pytest

from tests.equivalence.proof import only, proofs, sees
from tests.support.variants import Variant, run


def seen(case, shim=True, version="2.6.6"):
    result = run("hparams_of_parts", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["outside", "alone"])
def test_hparams_of_an_object_without_parts_are_unchanged(case):
    assert seen(case) == seen(case, shim=False)


def test_part_has_the_hparams_of_its_most_derived_class():
    assert seen("derived")["part"] == {"width": 3, "depth": 1}


def test_hparams_of_the_whole_keep_their_names():
    assert "part" in seen("inside")["keys"] and seen("inside")["keys"] == seen("inside", shim=False)["keys"]


PROOFS = proofs(
    "hparams-of-parts",
    sees(lambda seen: seen["part"] == {"width": 7, "depth": 5}),
    "inside",
    recommended="outside",
    observed=only("part", "whole"),
    right=sees(lambda seen: seen["part"] == {"width": 3, "depth": 1}),
)
