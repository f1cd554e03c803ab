"""PR 18191: fabric.setup_dataloaders makes another loader of the same class where nothing asks for one."""

import pytest

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run

NAME = "fabric-dataloader-kept"


@pytest.mark.parametrize(("case", "ranks"), [("plain", 1), ("ranks", 2)])
def test_other_loaders_are_unchanged(case, ranks):
    stock, shim = (
        run("fabric_dataloader_kept", Variant("pytorch-lightning", "2.0.9", shim), case, toggle=NAME if shim else None)
        for shim in (False, True)
    )
    assert stock.ok, stock
    assert stock.observations == shim.observations
    assert len(stock.observations) == ranks


PROOFS = (
    Proof(
        NAME,
        observes({"batches": [[0, 1], [2, 3]], "sampler": "SequentialSampler"}),
        case="lost",
        right=observes({"batches": [[0, 3], [6, 9]], "sampler": "SequentialSampler"}),
    ),
    Proof(NAME, ends_with("Trying to inject custom `Sampler` into the `Sized` instance"), case="refused"),
)
