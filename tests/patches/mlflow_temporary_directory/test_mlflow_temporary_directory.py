from tests.equivalence.proof import Proof, ends_with, sees

GIVEN = [[name, "kept"] for name in ("kept.ckpt", "aliases.txt", "metadata.yaml")]

PROOFS = (
    Proof(
        "mlflow-temporary-directory",
        ends_with(": '/proc/test"),
        right=sees(lambda seen: seen["given"] == GIVEN and seen["steps"] == 2),
    ),
)
