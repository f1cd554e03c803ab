from tests.equivalence.proof import only, proofs, sees

ERROR = "IndexError: pop from empty list"
PROOFS = proofs(
    "rich-progress-bar",
    lambda result: not result.ok and sees(lambda seen: seen.get("error") == ERROR)(result),
    observed=only("bars", "weights", "epochs"),
    right=sees(lambda seen: seen["epochs"] == 3),
)
