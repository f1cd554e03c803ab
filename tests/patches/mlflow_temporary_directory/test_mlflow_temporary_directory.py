from tests.equivalence.proof import ends_with, proofs, sees

GIVEN = [[name, "kept"] for name in ("kept.ckpt", "aliases.txt", "metadata.yaml")]

PROOFS = proofs(
    "mlflow-temporary-directory",
    ends_with(": '/proc/test"),
    right=sees(lambda seen: seen["given"] == GIVEN and seen["steps"] == 2),
)
