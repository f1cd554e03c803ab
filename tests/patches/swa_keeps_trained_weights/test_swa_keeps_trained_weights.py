from tests.support.programs import Program, only, proofs, sees

# The scenario of the earlier bug, whose run continues after the start of averaging.
test_average_is_unchanged = Program("swa-keeps-trained-weights", "2.6.6", scenario="swa_infinite_epochs").unchanged(
    check=sees(lambda seen: seen["averaged"])
)

PROOFS = proofs(
    "swa-keeps-trained-weights", sees(lambda seen: seen["untrained"]), recommended="without", observed=only("weight")
)
