"""Issue 15912: with torch 2.0 and later, Lightning 1.5 to 1.8.3 refuses torch's learning rate schedulers."""

import pytest

from tests.support.arms import Arm, run

WORDS = {"1.5.10": 'The provided lr scheduler "<torch', "1.6.5": "doesn't follow PyTorch's LRScheduler API"}
RIGHT = {"": 0.0125, "every step": 0.0, "plateau": 0.1}
"""The learning rate after three epochs, as 1.9.5 has it, which is not affected: see the first test."""


@pytest.mark.parametrize("case", RIGHT)
def test_the_official_fix(case):
    result = run("scheduler_types", Arm("pytorch-lightning", "1.9.5"), case=case, fresh=True)
    assert result.ok, result
    assert result.observations == [{"lr": pytest.approx(RIGHT[case], abs=1e-5)}]


@pytest.mark.parametrize("version", WORDS)
def test_stock_refuses_them(version):
    result = run("scheduler_types", Arm("pytorch-lightning", version), fresh=True)
    assert not result.ok and WORDS[version] in result.output, result


@pytest.mark.parametrize("case", RIGHT)
@pytest.mark.parametrize("version", ["1.5.10", "1.6.5", "1.7.7", "1.8.3"])
def test_they_are_taken(version, case):
    shim = run("scheduler_types", Arm("pytorch-lightning", version, shim=True), case=case, fresh=True)
    assert shim.ok, shim
    assert shim.observations == [{"lr": pytest.approx(RIGHT[case], abs=1e-5)}]
