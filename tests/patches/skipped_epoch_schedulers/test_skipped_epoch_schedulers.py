"""Issue 21296: schedulers are not stepped if on_train_batch_start returns -1."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

PROOFS = (
    Proof("skipped-epoch-schedulers", sees(lambda seen: len(set(seen["rates"])) == 1), case="epoch"),
    Proof("skipped-epoch-schedulers", sees(lambda seen: len(set(seen["rates"])) == 1), case="plateau"),
)


@pytest.mark.parametrize("case", ["whole", "error"])
def test_other_epochs_are_unchanged(case):
    stock = run("skipped_epoch_schedulers", Variant("lightning", "2.5.6"), case)
    shim = run(
        "skipped_epoch_schedulers", Variant("lightning", "2.5.6", shim=True), case, toggle="skipped-epoch-schedulers"
    )
    assert stock.ok
    assert shim.observations == stock.observations, (stock, shim)


def test_fixed_release_is_unchanged():
    official = run("skipped_epoch_schedulers", Variant("lightning", "2.6.6"), "step")
    shim = run(
        "skipped_epoch_schedulers", Variant("lightning", "2.6.6", shim=True), "step", toggle="skipped-epoch-schedulers"
    )
    assert shim.observations == official.observations, (shim, official)
    assert "lightning_patches: lightning" not in shim.output
