"""PR 18657: automatic optimization refuses a mapping that is no dict."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

NAME = "automatic-optimization-mapping"


def ran(case, shim):
    return run(
        "automatic_optimization_mapping",
        Variant("pytorch-lightning", "2.0.9", shim),
        case,
        toggle=NAME if shim else None,
    )


def test_mapping_trains_like_a_dict():
    stock, shim = ran("dict", shim=False), ran("", shim=True)
    assert stock.ok and shim.ok
    assert shim.observations == stock.observations == ran("dict", shim=True).observations


def test_mapping_without_a_loss_is_refused_like_a_dict():
    assert "the 'loss' key needs to be present" in ran("lossless", shim=True).output


PROOFS = (
    Proof(
        NAME,
        ends_with("In automatic optimization, `training_step` must return a Tensor"),
        right=sees(lambda seen: seen["seen"] == [[["loss", "width"], 3, False]] * 2),
    ),
)
