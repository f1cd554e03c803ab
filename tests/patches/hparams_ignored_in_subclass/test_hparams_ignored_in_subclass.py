"""PR 21490: an argument that a subclass ignores is saved, because the base class has saved it."""

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

PATCH = "hparams-ignored-in-subclass"


def observed(variant):
    result = run("hparams_ignored_in_subclass", variant)
    assert result.ok, result
    return result.observations[0]


def test_patch_is_opt_in():
    assert observed(Variant("lightning", "2.6.0", shim=True)) == observed(Variant("lightning", "2.6.0"))


def _saved(seen):
    return seen["derived"].get("backbone") == "large" and "backbone" in seen["saved"]


def _left_out(seen):
    return (
        seen["derived"] == seen["initial"] == {"width": 2, "rate": (0.1).hex()}
        and seen["saved"] == ["rate", "width"]
        and seen["listed"] == {"width": 2, "depth": 2}
        and seen["untouched"] == {"width": 2, "backbone": "large"}
    )


PROOFS = (Proof(PATCH, sees(_saved), right=sees(_left_out)),)
