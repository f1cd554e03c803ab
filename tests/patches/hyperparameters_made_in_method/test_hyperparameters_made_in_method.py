from tests.equivalence.proof import Proof, ends_with, observes

PROOFS = (
    Proof(
        "hyperparameters-made-in-method",
        ends_with("KeyError: 'depth'"),
        right=observes({"teacher": {"depth": 2}, "student": {"width": 4}}),
    ),
)
