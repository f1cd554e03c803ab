from tests.equivalence.proof import ends_with, observes, proofs

PROOFS = proofs(
    "hyperparameters-made-in-method",
    ends_with("KeyError: 'depth'"),
    right=observes({"teacher": {"depth": 2}, "student": {"width": 4}}),
)
