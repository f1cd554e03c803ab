"""A run is resumed from a checkpoint that was saved at the end of a batch within an epoch. Cases: a configuration and a
stop of `tests.differential.resuming`."""

import json

from _expect import bug, fixed, same


def begins_with_batch(number):
    return lambda seen: (
        next(event for event in map(json.loads, seen["events"]) if event[0] == "batch starts")[3] == number
    )


EXPECT = [
    bug("plain: within", stock=begins_with_batch(1), patched=begins_with_batch(2), alone=True),
    fixed(
        ["plain: last batch", "validated every two batches: within", "StepLR by step, accumulation: within"],
        "resumed run equals the uninterrupted run",
        like="{}, whole",
        alone=True,
        on=("2.0.0", "2.4.0"),
    ),
    same(
        ["plain: epoch end", "stateful: epoch end", "plain: within, whole"],
        "run that is right on stock is unchanged",
        alone=True,
    ),
    fixed(
        "BackboneFinetuning, only the head in the optimizer: within",
        "backbone rate is raised once for the resumed epoch",
        like="{}, whole",
        toggle="default,exact-resume",
        on=("2.0.0", "2.4.0"),
    ),
]

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
