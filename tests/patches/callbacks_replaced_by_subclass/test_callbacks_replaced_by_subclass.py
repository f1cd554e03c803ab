from tests.equivalence.proof import Proof, observes

PROOFS = (
    Proof(
        "callbacks-replaced-by-subclass",
        observes({"callbacks": ["Base", "Other", "Own"]}),
        right=observes({"callbacks": ["Other", "Own"]}),
    ),
)
