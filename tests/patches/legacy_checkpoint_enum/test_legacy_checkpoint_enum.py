from tests.support.programs import Program, sees

PROGRAM = Program("legacy-checkpoint-enum", "2.0.5")

PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: (seen["error"] or "").endswith("has no attribute '_FaultTolerantMode'")),
        case=case,
        since="2.0.0" if case == "fit" else "",
        right=sees(lambda seen: seen["error"] is None and bool(seen["found"]) and not seen["left"]),
    )
    for case in ("model", "fit", "context")
)

test_plain_checkpoint_loads_as_on_stock = PROGRAM.unchanged(
    "plain", check=sees(lambda seen: seen["error"] is None and not seen["left"])
)
test_custom_enumeration_is_kept = PROGRAM.unchanged(
    "own", check=sees(lambda seen: seen["error"] is None and seen["left"])
)
test_broken_checkpoint_is_refused_as_on_stock = PROGRAM.unchanged(
    "broken", check=sees(lambda seen: seen["error"] is not None)
)
