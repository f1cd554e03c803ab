from tests.support.programs import Program, sees

PROGRAM = Program("scheduler-config-accepted", "2.6.6")

test_scheduler_that_was_accepted_is_unchanged = PROGRAM.unchanged("dict", "vars", "own", "manual-vars")

PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: "'LRSchedulerConfig' object has no attribute" in seen.get("error", "")),
        case=f"{kind}object",
        recommended=f"{kind}dict",
    )
    for kind in ("", "manual-")
)
