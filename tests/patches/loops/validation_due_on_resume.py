"""A run is resumed from a checkpoint of a batch that a validation follows. Cases: a configuration and a stop of
`tests.differential.resuming`."""

import json

from _expect import bug, fixed, same

EXPECT = [
    bug(
        "validated every two batches: within",
        stock=lambda seen: json.loads(seen["events"][0]) == ["batch starts", 1, 6, 2],
        patched=lambda seen: json.loads(seen["events"][0])[0] == "validation starts",
        like="{}, whole",
    ),
    fixed(
        ["max_steps, across epochs: within", "stateful, validated every two batches: within"],
        "resumed run equals the uninterrupted run",
        like="{}, whole",
    ),
    same(
        ["plain: within", "validated every two batches: validation"],
        "run without a validation that is due is unchanged",
    ),
]

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
