from tests.equivalence.proof import proofs, sees

PROOFS = proofs(
    "spike-detection-state",
    lambda result: not result.ok and ("'bad_bachtes'" in result.output or "'running'" in result.output),
    recommended="hand",
    since="2.1.0",
    right=sees(lambda seen: seen["bad_batches"] == [1, 2] and seen["mode"] == "max"),
)
