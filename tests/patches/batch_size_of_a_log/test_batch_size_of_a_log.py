from tests.support.programs import Program, only, sees

PROGRAM = Program("batch-size-of-a-log", "2.6.6", "pytorch-lightning")

test_batch_without_tensors_is_refused_as_on_stock = PROGRAM.unchanged(
    "none",
    on=("2.0.0", "2.6.6"),
    check=sees(lambda seen: seen["error"].startswith("MisconfigurationException: We could not infer the batch_size")),
    ends_well=False,
)


PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen, warned=warned: (seen["looks"], seen["warned"]) == (200, warned)),
        case,
        observed=only("mean", "warned"),
        recommended=f"{case}-said",
        right=sees(lambda seen: seen["looks"] in (0, 4)),
        note="How often a batch is looked at: not at all where the size is said.",
    )
    for case, warned in (("alike", 0), ("unlike", 2))
)
