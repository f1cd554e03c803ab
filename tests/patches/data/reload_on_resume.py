"""A run with reload_dataloaders_every_n_epochs is resumed. Cases: a configuration and a stop of
`tests.differential.resuming`."""

import json

from _expect import bug, fixed, same


def makes_loaders_in(*epochs):
    return lambda seen: json.dumps(["loaders", *epochs, "validation", *epochs]) in seen["events"]


EXPECT = [
    bug(
        "reload every three epochs: epoch end", stock=makes_loaders_in(), patched=makes_loaders_in(3), like="{}, whole"
    ),
    fixed(
        [
            "reload every two epochs: epoch end",
            "reload every two epochs: within",
            "reload every three epochs: finished",
            "reload every two epochs, validated across epochs: validation",
            "reload every two epochs, validated across epochs: epoch end",
        ],
        "resumed run makes its loaders in the epochs of the uninterrupted run",
        like="{}, whole",
    ),
    same(
        "reload every epoch, validated across epochs, sanity check: epoch end",
        "resumed run with a sanity check ends well",
        on="2.2.5",
    ),
    same(["plain: epoch end", "reload every epoch: epoch end"], "run that is right on stock is unchanged"),
]

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
