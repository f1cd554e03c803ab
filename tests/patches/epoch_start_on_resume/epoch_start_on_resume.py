"""A run with a callback that sets something at the start of an epoch is resumed within one. Cases: a configuration and
a stop of `tests.differential.resuming`."""

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
