"""PR 18508: a callback of configure_callbacks that is a subclass of the Trainer's is added to it."""

from tests.equivalence.proof import Proof, observes

PROOFS = (
    Proof(
        "callbacks-replaced-by-subclass",
        observes({"callbacks": ["Base", "Other", "Own"]}),
        right=observes({"callbacks": ["Other", "Own"]}),
    ),
)
