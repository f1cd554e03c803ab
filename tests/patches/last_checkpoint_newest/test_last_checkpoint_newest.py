"""From 2.6.0 on, last.ckpt stays at the best epoch if ModelCheckpoint has a monitor."""

import pytest

from tests.equivalence.proof import only, proofs, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["better", "link", "subclass", "every", "second"])
def test_other_checkpoints_are_unchanged(case):
    stock = run("last_checkpoint_newest", Variant("lightning", "2.6.6"), case)
    shim = run(
        "last_checkpoint_newest", Variant("lightning", "2.6.6", shim=True), case, toggle="last-checkpoint-newest"
    )
    assert stock.ok and shim.ok, (stock, shim)
    if case != "every":
        assert shim.observations == stock.observations, (stock, shim)
    else:
        assert (stock.observations[0]["last"], shim.observations[0]["last"]) == (4, 8)


PROOFS = proofs(
    "last-checkpoint-newest",
    sees(lambda seen: seen["last"] == 2),
    "worse",
    "validation",
    recommended="second",
    observed=only("last"),
    right=sees(lambda seen: seen["last"] == 10),
)
