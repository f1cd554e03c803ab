"""A run with a callback that sets something at the start of an epoch is resumed within one. Cases: a configuration and
a stop of `tests.differential.resuming`."""

import json

from _expect import bug, fixed, same


def first_batch_ends_at(step):
    return lambda seen: next(event for event in map(json.loads, seen["events"]) if event[0] == "batch ends")[2] == step


EXPECT = [
    bug(
        "GradientAccumulationScheduler: within",
        stock=first_batch_ends_at(4),
        patched=first_batch_ends_at(3),
        like="{}, whole",
        since="2.5.0",
    ),
    fixed(
        ["SWA from the start: within", "SWA with a scheduler: first batch"],
        "swa of a resumed run equals that of the uninterrupted run",
        like="{}, whole",
    ),
    same(
        ["plain: within", "GradientAccumulationScheduler: epoch end", "SWA: epoch end"],
        "run that is right on stock is unchanged",
    ),
]

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
