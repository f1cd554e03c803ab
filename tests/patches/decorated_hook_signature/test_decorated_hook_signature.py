"""PR 17507: a training_step without batch_idx below a decorator is called with it."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run

NAME = "decorated-hook-signature"
TRAINS = sees(lambda seen: seen["steps"] == 3)


def test_decorator_with_batch_idx_gets_it_by_default():
    result = run("decorated_hook_signature", Variant("pytorch-lightning", "2.0.2", shim=True), "dropped")
    assert TRAINS(result), result


def test_step_with_two_decorators_trains():
    stock, shim = (
        run(
            "decorated_hook_signature",
            Variant("pytorch-lightning", "2.0.2", shim),
            "twice",
            toggle=NAME if shim else None,
        )
        for shim in (False, True)
    )
    assert not stock.ok
    assert TRAINS(shim), shim


PROOFS = tuple(
    Proof(NAME, ends_with("takes 2 positional arguments but 3 were given"), case=case, right=TRAINS)
    for case in ("batch", "iterator")
)
