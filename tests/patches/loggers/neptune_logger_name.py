"""A package imports NeptuneLogger at its top. Cases: ``use``, ``other`` (a name that never existed), ``module``: it is
imported from its own module."""

from _expect import bug, patched, same

EXPECT = [
    bug(stock="has no attribute 'NeptuneLogger'", like="module"),
    patched("use", "first use reports the removal", "sunset", alone=True),
    same("other", "other names are missing as on stock", "no attribute 'SaturnLogger'", compare=lambda ranks: None),
]

import _scenario as scenario

loggers = scenario.pytorch("loggers.neptune" if scenario.CASE == "module" else "loggers")

if __name__ == "__main__":
    with scenario.observing_errors():
        if scenario.CASE == "other":
            loggers.SaturnLogger  # noqa: B018
        logger = loggers.NeptuneLogger
        if scenario.CASE == "use":
            logger(project="a")
    scenario.observe(name=logger.__name__)
