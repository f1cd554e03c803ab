"""Issue 15912: with torch 2.0 and later, Lightning 1.5 to 1.8.3 refuses torch's learning rate schedulers."""

from functools import cache

import pytest

from tests.support.variants import Variant, run

WORDS = {"1.5.10": 'The provided lr scheduler "<torch', "1.6.5": "doesn't follow PyTorch's LRScheduler API"}


@cache
def right(case):
    """Return the observations of 1.9.5, which has the official fix."""
    result = run("scheduler_types", Variant("pytorch-lightning", "1.9.5"), case=case, fresh=True)
    assert result.ok, result
    return result.observations


def test_official_fix_halves_the_rate_in_each_epoch():
    assert right("") == [{"lr": (0.0125).hex()}]


@pytest.mark.parametrize("version", WORDS)
def test_stock_refuses_the_schedulers(version):
    result = run("scheduler_types", Variant("pytorch-lightning", version), fresh=True)
    assert not result.ok and WORDS[version] in result.output, result


@pytest.mark.parametrize("case", ["", "every step", "plateau"])
@pytest.mark.parametrize("version", ["1.5.10", "1.6.5", "1.7.7", "1.8.3"])
def test_they_are_taken(version, case):
    shim = run("scheduler_types", Variant("pytorch-lightning", version, shim=True), case=case, fresh=True)
    assert shim.ok, shim
    assert shim.observations == right(case)
