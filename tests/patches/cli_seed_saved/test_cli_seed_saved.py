"""PR 18056: with --seed_everything=true the configuration that is saved has no seed."""

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run


def test_given_seed_is_saved():
    for shim in (False, True):
        result = run("cli_seed_saved", Variant("pytorch-lightning", "2.0.5", shim), "given")
        assert result.observations == [{"seed": 3}], result


PROOFS = (Proof("cli-seed-saved", observes({"seed": True}), right=observes({"seed": 7})),)
