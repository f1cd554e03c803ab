"""A run is resumed from a checkpoint that was saved on the last batch of an epoch. Cases: a configuration and a stop of
`tests.differential.resuming`."""

import json

from _expect import bug, fixed, same


def begins_in_epoch(number):
    """True if the first event of the resumed run is in this epoch."""
    return lambda seen: json.loads(seen["events"][0])[1] == number


EXPECT = [
    *[
        bug(
            f"{name}: last batch",
            stock=begins_in_epoch(2),
            patched=begins_in_epoch(1),
            like=f"{name}: last batch, whole",
        )
        for name in ("plain", "no validation", "validated every two batches", "stateful")
    ],
    same(
        ["plain: within", "plain: epoch end", "plain: validation", "stateful: validation"],
        "run resumed elsewhere is unchanged",
        alone=True,
        on=("2.5.0", "2.6.6"),
    ),
    *[
        fixed(
            f"{name}: {stop}",
            "epoch after the resume has all batches",
            like="{}, whole",
            alone=True,
        )
        for name in (
            "stateful, lazy",
            "stateful, limit_train_batches",
            "CombinedLoader, stateful streams",
            "stream",
            "stateful stream",
        )
        for stop in ("last batch", "validation")
    ],
]

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
