"""A package imports NeptuneLogger at its top. Cases: ``use``, ``other`` (a name that never existed), ``module``: it is
imported from its own module."""

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
