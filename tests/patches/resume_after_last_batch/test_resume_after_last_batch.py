from tests.support.programs import Program, sees

PROGRAM = Program("resume-after-last-batch", "2.6.6", "pytorch-lightning")

RESUMED = [f"{epoch}.{batch}: {batch}" for epoch in (1, 2) for batch in (0, 1, 2)]


def batches(seen):
    return [line for line in seen["seen"] if ":" in line]


test_resumed_run_equals_the_uninterrupted_run = PROGRAM.fixed(
    reference="whole", right=sees(lambda seen: batches(seen) == RESUMED), on=("2.0.0", "2.6.6")
)
test_finished_run_has_the_epoch_of_the_uninterrupted_run = PROGRAM.fixed(
    "done-saved",
    bug=sees(lambda seen: seen["epoch"] == 0),
    right=sees(lambda seen: seen["epoch"] == 1),
    on=("2.0.0", "2.6.6"),
)
test_run_resumed_within_an_epoch_is_unchanged = PROGRAM.unchanged("middle", "done", on=("2.4.0", "2.6.6"))

PROOFS = tuple(
    PROGRAM.proof(
        sees(lambda seen: "1.0: 0" in seen["seen"] and batches(seen) != RESUMED or "1.3: 0" in seen["seen"]),
        case=case,
        recommended=recommended,
        right=sees(lambda seen: batches(seen) == RESUMED and (seen["steps"], seen["epoch"]) == (9, 3)),
    )
    for case, recommended in (("", "epochs"), ("saved", "saved-epochs"))
)
