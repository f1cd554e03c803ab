"""A run is resumed from a checkpoint of a batch that a validation follows. Cases: a configuration and a stop of
`tests.differential.resuming`."""

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
