"""A run with reload_dataloaders_every_n_epochs is resumed. Cases: a configuration and a stop of
`tests.differential.resuming`."""

import _scenario as scenario

from tests.differential import resuming

if __name__ == "__main__":
    scenario.observe(**resuming.after_stop(scenario.CASE))
