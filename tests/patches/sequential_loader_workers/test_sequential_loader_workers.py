"""PR 17639: with several validation DataLoaders, the workers of all of them run at once."""

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


def seen(version, case, shim=False):
    result = run("sequential_loader_workers", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


def test_only_one_loader_has_workers():
    stock, shim = seen("2.0.2", "validate"), seen("2.0.2", "validate", shim=True)
    assert (stock.pop("workers"), shim.pop("workers")) == ([3, 3, 3], [1, 1, 1])
    assert shim == stock


def test_batches_are_unchanged():
    assert seen("2.0.2", "batches", shim=True) == seen("2.0.2", "batches")


ALL = sees(lambda seen: seen["workers"][0] == 3)
ONE = sees(lambda seen: seen["workers"] == [1, 1, 1])
PROOFS = tuple(
    Proof("sequential-loader-workers", ALL, case=case, right=ONE) for case in ("validate", "predict", "loader")
)
