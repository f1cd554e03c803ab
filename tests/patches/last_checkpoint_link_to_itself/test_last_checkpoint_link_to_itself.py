"""PR 21186: last.ckpt, the only checkpoint yet, is replaced by a link to itself."""

from tests.equivalence.proof import Proof, observes
from tests.support.arms import Arm, run


def test_a_link_to_another_stays_a_link():
    for shim in (False, True):
        result = run("last_checkpoint_link_to_itself", Arm("pytorch-lightning", "2.5.6", shim), "every")
        assert result.observations == [{"there": True, "linked": True, "step": 4}], result


PROOFS = (
    Proof(
        "last-checkpoint-link-to-itself",
        observes({"there": True, "linked": True, "step": None}),
        right=observes({"there": True, "linked": False, "step": 4}),
    ),
)
