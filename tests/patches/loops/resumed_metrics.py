"""A run with a scheduler or callback that monitors a metric is resumed. Cases: a configuration and a stop of
`tests.differential.resuming`."""

import json

from _expect import bug, fixed, same


def rate_is(rate):
    """True if this is the learning rate of the first batch after the resume."""

    def check(seen):
        events = map(json.loads, seen["events"])
        return next(event[4] for event in events if event[0] == "batch ends") == [[rate]]

    return check


EXPECT = [
    bug(
        ["plateau by epoch: epoch end", "plateau, stream: epoch end"],
        stock=rate_is(0.1),
        patched=rate_is(0.05),
        like="{}, whole",
    ),
    fixed(
        [
            "plateau by epoch: within",
            "plateau by epoch: validation",
            "plateau by step: validation",
            "plateau by two steps on a validation metric: validation",
            "EarlyStopping, stream: validation",
            "ModelCheckpoint, best: validation",
        ],
        "resumed run equals the uninterrupted run",
        like="{}, whole",
        alone=True,
    ),
    same(
        [
            "StepLR by epoch: epoch end",
            "EarlyStopping after validation: epoch end",
            "plateau by epoch: epoch end, whole",
            "EarlyStopping: epoch end, whole",
            "plain: epoch end, whole",
        ],
        "run that is right on stock is unchanged",
        alone=True,
        on=("2.0.0", "2.6.6"),
    ),
]

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
