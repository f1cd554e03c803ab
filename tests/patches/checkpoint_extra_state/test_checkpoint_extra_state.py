"""PR 17812: load_from_checkpoint, and the first entry of the state is not a tensor."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

ERROR = "AttributeError: 'dict' object has no attribute 'device'"


def seen(version, case, shim=False):
    result = run("checkpoint_extra_state", Variant("pytorch-lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["model", "only"])
@pytest.mark.parametrize("version", ["2.0.2", "2.0.3"])
def test_model_is_loaded(version, case):
    assert seen(version, case) == {"error": ERROR, "loaded": None, "remembered": None}
    shim = seen(version, case, shim=True)
    assert shim == {"error": None, "loaded": ["cpu", case == "model"], "remembered": "seven"} == seen("2.0.4", case)


@pytest.mark.parametrize("case", ["layer", "none"])
def test_state_dict_that_starts_with_a_tensor_loads_as_on_stock(case):
    stock = seen("2.0.2", case)
    assert (stock["error"], stock["loaded"]) == (None, ["cpu", True])
    assert seen("2.0.2", case, shim=True) == stock


FAILS = sees(lambda seen: seen["error"] == ERROR)
PROOFS = tuple(Proof("checkpoint-extra-state", FAILS, case=case) for case in ("model", "only"))
