from tests.equivalence.proof import Proof, observes

PROOFS = (
    Proof(
        "last-checkpoint-at-end",
        observes({"files": [], "step": None}),
        right=observes({"files": ["last.ckpt"], "step": 4}),
    ),
)
