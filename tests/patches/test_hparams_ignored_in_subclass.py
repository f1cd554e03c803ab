"""PR 21490: an argument that a subclass ignores is saved, because the base class has saved it."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

PATCH = "hparams-ignored-in-subclass"


def observed(arm, toggle=PATCH):
    result = run("hparams_ignored_in_subclass", arm, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.6.0")])
def test_ignored_name_is_not_saved(distribution, version):
    stock = observed(Arm(distribution, version))
    assert stock["derived"]["backbone"] == "large" and "backbone" in stock["saved"], stock

    shim = observed(Arm(distribution, version, shim=True))
    assert shim["derived"] == shim["initial"] == {"width": 2, "rate": (0.1).hex()}
    assert shim["saved"] == ["rate", "width"]
    assert shim["listed"] == {"width": 2, "depth": 2}
    assert shim["untouched"] == stock["untouched"] == {"width": 2, "backbone": "large"}


def test_official_fix_saves_the_same():
    assert observed(Arm("lightning", "2.6.1")) == observed(Arm("lightning", "2.6.0", shim=True))


def test_it_is_opt_in():
    assert observed(Arm("lightning", "2.6.0", shim=True), toggle=None) == observed(Arm("lightning", "2.6.0"))


PROOFS = (Proof(PATCH, sees(lambda seen: "backbone" in seen["saved"])),)
