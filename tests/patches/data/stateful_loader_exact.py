"""A run with a stateful data loader is resumed. Cases: a configuration and a stop of `tests.differential.resuming`."""

import json

from _expect import bug, fixed, same


def trains_first_on(number):
    return lambda seen: (
        next(event for event in map(json.loads, seen["events"]) if event[0] == "batch")[1][0] % 10 == number
    )


EXPECT = [
    bug("stateful stream: within", stock=trains_first_on(4), patched=trains_first_on(3), like="{}, whole"),
    fixed(
        [
            "stateful: epoch end",
            "stateful, lazy: epoch end",
            "stateful, limit_train_batches: epoch end",
            "stateful, lazy, limit_train_batches: epoch end",
            "stateful stream: epoch end",
            "stateful stream, limit_train_batches: epoch end",
        ],
        "loader continues after the end of an epoch",
        like="{}, whole",
    ),
    same(["stream: epoch end", "stateful: within", "plain: epoch end"], "run that is right on stock is unchanged"),
]

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
