from tests.equivalence.proof import Proof, observes, sees

PROOFS = (
    Proof(
        "interrupt-ends-all-ranks",
        sees(lambda seen: seen["goes_on"]),
        right=observes({"goes_on": False, "status": 1}, {"goes_on": False}),
    ),
)
