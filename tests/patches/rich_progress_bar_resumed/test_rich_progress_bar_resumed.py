from tests.support.programs import Program, observes, sees

PROGRAM = Program("rich-progress-bar-resumed", "2.5.2")

SECOND_EPOCH = [["Epoch 1/1 ", 4, batch] for batch in (1, 2, 3, 4)]
SHOWN = {"resumed": [["Epoch 0/1 ", 4, 1], ["Epoch 0/1 ", 4, 2], *SECOND_EPOCH], "epoch": SECOND_EPOCH}

test_run_without_a_bar_is_unchanged = PROGRAM.unchanged("off", check=observes({"error": None, "seen": [], "steps": 8}))
test_run_from_the_start_is_unchanged = PROGRAM.unchanged(
    "begun", check=sees(lambda seen: (seen["error"], seen["steps"], len(seen["seen"])) == (None, 8, 8))
)

PROOFS = tuple(
    PROGRAM.proof(
        observes({"error": "AssertionError", "seen": [], "steps": 3 if case == "resumed" else 5}),
        case=case,
        right=observes({"error": None, "seen": shown, "steps": 8}),
    )
    for case, shown in SHOWN.items()
)
