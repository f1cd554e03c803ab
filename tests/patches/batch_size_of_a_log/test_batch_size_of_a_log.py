import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run

NAME = "batch-size-of-a-log"


def observed(version, case, toggle):
    variant = Variant("pytorch-lightning", version, toggle is not None)
    (seen,) = run("batch_size_of_a_log", variant, case, toggle=toggle).observations
    return seen


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_batch_without_tensors_is_refused_as_on_stock(version):
    stock = observed(version, "none", None)
    assert stock["error"].startswith("MisconfigurationException: We could not infer the batch_size")
    assert observed(version, "none", f"default,{NAME}") == stock


def test_patch_is_opt_in():
    assert observed("2.6.6", "unlike", "default") == observed("2.6.6", "unlike", None)


PROOFS = tuple(
    Proof(
        NAME,
        sees(lambda seen, warned=warned: (seen["looks"], seen["warned"]) == (200, warned)),
        case,
        observed=only("mean", "warned"),
        recommended=f"{case}-said",
        right=sees(lambda seen: seen["looks"] in (0, 4)),
        note="How often a batch is looked at: not at all where the size is said.",
    )
    for case, warned in (("alike", 0), ("unlike", 2))
)
