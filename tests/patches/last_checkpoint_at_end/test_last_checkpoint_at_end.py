from tests.equivalence.proof import observes, proofs

PROOFS = proofs(
    "last-checkpoint-at-end", observes({"files": [], "step": None}), right=observes({"files": ["last.ckpt"], "step": 4})
)
