import json

from tests.support.programs import Program, sees

PROGRAM = Program("stateful-loader-exact", "2.6.6", "pytorch-lightning")

test_loader_continues_after_the_end_of_an_epoch = PROGRAM.fixed(
    "stateful: epoch end",
    "stateful, lazy: epoch end",
    "stateful, limit_train_batches: epoch end",
    "stateful, lazy, limit_train_batches: epoch end",
    "stateful stream: epoch end",
    "stateful stream, limit_train_batches: epoch end",
    reference="{}, whole",
)
test_run_that_is_right_on_stock_is_unchanged = PROGRAM.unchanged(
    "stream: epoch end", "stateful: within", "plain: epoch end"
)


def trains_first_on(number):
    return sees(
        lambda seen: (
            next(event for event in map(json.loads, seen["events"]) if event[0] == "batch")[1][0] % 10 == number
        )
    )


PROOFS = PROGRAM.proofs(
    trains_first_on(4), "stateful stream: within", recommended="{}, whole", right=trains_first_on(3)
)
