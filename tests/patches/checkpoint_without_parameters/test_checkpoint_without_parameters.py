"""PR 18266: load_from_checkpoint refuses a module without parameters."""

import pytest

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run

REFUSED = "contains no parameters."


@pytest.mark.parametrize(("case", "error"), [("lost", "Missing key(s) in state_dict"), ("lost-loosely", REFUSED)])
@pytest.mark.parametrize("version", ["2.0.2", "2.0.9"])
def test_file_without_weights_is_refused(version, case, error):
    for shim in (False, True):
        result = run("checkpoint_without_parameters", Variant("pytorch-lightning", version, shim), case)
        assert not result.ok and error in result.observations[0]["error"], result


PROOFS = (Proof("checkpoint-without-parameters", ends_with(REFUSED), right=observes({"value": 3, "device": "cpu"})),)
