from tests.equivalence.proof import observes, proofs, sees

PROOFS = proofs(
    "interrupt-ends-all-ranks",
    sees(lambda seen: seen["goes_on"]),
    right=observes({"goes_on": False, "status": 1}, {"goes_on": False}),
)
