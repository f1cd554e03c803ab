from tests.equivalence.proof import Proof, observes, only

PROOFS = (
    Proof(
        "last-checkpoint-link-relative",
        observes({"linked": True, "there": False}),
        observed=only("there"),  # 2.1.4 creates a link with save_last="link"
        right=lambda result: result.observations[0]["there"],
    ),
)
