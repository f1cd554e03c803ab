import json

from tests.support.programs import Program, sees

PROGRAM = Program("reload-on-resume", "2.6.6", "pytorch-lightning")

test_resumed_run_makes_its_loaders_in_the_epochs_of_the_uninterrupted_run = PROGRAM.fixed(
    "reload every two epochs: epoch end",
    "reload every two epochs: within",
    "reload every three epochs: finished",
    "reload every two epochs, validated across epochs: validation",
    "reload every two epochs, validated across epochs: epoch end",
    reference="{}, whole",
)
test_resumed_run_with_a_sanity_check_ends_well = PROGRAM.unchanged(
    "reload every epoch, validated across epochs, sanity check: epoch end", on=("2.2.5",)
)
test_run_that_is_right_on_stock_is_unchanged = PROGRAM.unchanged("plain: epoch end", "reload every epoch: epoch end")


def makes_loaders_in(*epochs):
    return sees(lambda seen: json.dumps(["loaders", *epochs, "validation", *epochs]) in seen["events"])


PROOFS = PROGRAM.proofs(
    makes_loaders_in(), "reload every three epochs: epoch end", recommended="{}, whole", right=makes_loaders_in(3)
)
