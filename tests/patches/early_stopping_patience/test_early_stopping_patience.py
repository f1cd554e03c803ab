"""A resumed EarlyStopping has the patience of the checkpoint instead of the program's."""

import pytest

from tests.equivalence.proof import only, proofs, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["set", "same", "fresh"])
def test_other_programs_are_unchanged(case):
    stock = run("early_stopping_patience", Variant("lightning", "2.6.6"), case)
    shim = run("early_stopping_patience", Variant("lightning", "2.6.6", True), case, toggle="early-stopping-patience")
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = proofs(
    "early-stopping-patience",
    sees(lambda seen: (seen["epochs"], seen["patience"]) == (4, 3)),
    "longer",
    recommended="set",
    observed=only("epochs", "patience"),
)
