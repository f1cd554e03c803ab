from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("finetuning-with-lr-finder", "2.5.6", alone=True)

PROOFS = PROGRAM.proofs(
    ends_with("KeyError: 0"), "finder", right=sees(lambda seen: seen["groups"][-2:] == [[2, 2], [2, 2]])
)

test_resuming_restores_the_groups_as_on_stock = PROGRAM.unchanged(
    "resume", check=sees(lambda seen: seen["groups"] == [[2, 2]])
)
