from tests.equivalence.proof import ends_with, proofs, sees

PROOFS = proofs(
    "load-from-checkpoint-inspected",
    ends_with("load_from_checkpoint` cannot be called on an instance"),
    right=sees(lambda seen: seen["refused"] == [True, True]),
)
