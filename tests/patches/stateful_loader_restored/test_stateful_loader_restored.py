from tests.support.programs import Program, observes, sees

PROGRAM = Program("stateful-loader-restored", "2.6.6")
BY_HAND = Program("stateful-loader-restored", "2.6.6", scenario="stateful_loader_state_by_hand")

test_correct_training_is_unchanged = PROGRAM.unchanged("not-estimated", "fresh")
# The checkpoint's state, of batch 2, replaces it.
test_manually_loaded_state_is_replaced = BY_HAND.fixed(
    "estimated",
    bug=observes({"restored": [4], "seen": [5, 6, 1, 2]}),
    right=observes({"restored": [4, 2], "seen": [3, 4, 5, 6]}),
    reference="not-estimated",
)
test_release_without_loader_states_is_unchanged = PROGRAM.unchanged(
    "estimated", on=("2.1.4",), distribution="pytorch-lightning"
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["restored"] == [] and seen["seen"][0] == 1),
    "estimated",
    recommended="not-estimated",
    since="2.2.0",
    right=sees(lambda seen: len(seen["restored"]) == 1 and seen["seen"][0] > 1),
)
