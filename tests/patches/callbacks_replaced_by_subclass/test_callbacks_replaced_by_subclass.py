from tests.equivalence.proof import observes, proofs

PROOFS = proofs(
    "callbacks-replaced-by-subclass",
    observes({"callbacks": ["Base", "Other", "Own"]}),
    right=observes({"callbacks": ["Other", "Own"]}),
)
