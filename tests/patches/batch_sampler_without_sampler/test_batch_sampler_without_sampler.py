from tests.equivalence.proof import ends_with, observes, proofs

PROOFS = proofs(
    "batch-sampler-without-sampler",
    ends_with("object has no attribute 'sampler'"),
    right=observes({"seen": [0, 8, 1, 9, 2, 10]}),
)
