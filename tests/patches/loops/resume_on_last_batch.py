"""A run is resumed from a checkpoint that was saved on the last batch of an epoch. Cases: a configuration and a stop of
`tests.differential.resuming`."""

import json

from _expect import bug, fixed, same


def begins_in_epoch(number):
    """True if the first event of the resumed run is in this epoch."""
    return lambda seen: json.loads(seen["events"][0])[1] == number


# After a stop in the validation.
RIGHT_ON_STOCK = (
    "stateful, limit_train_batches",
    "CombinedLoader, stateful streams",
    "stream",
    "stateful stream",
)

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
    fixed(
        [f"{name}: last batch" for name in ("stateful, lazy", *RIGHT_ON_STOCK)],
        "epoch after the resume has all batches",
        like="{}, whole",
        alone=True,
    ),
    fixed("stateful, lazy: validation", "epoch after the resume has all batches", like="{}, whole", alone=True),
    same(
        [f"{name}: validation" for name in RIGHT_ON_STOCK], "epoch after the resume still has all batches", alone=True
    ),
]

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
