"""Issue 15912: with torch 2.0 and later, the command line of Lightning 1.6 to 1.8 offers no scheduler of torch's."""

import pytest

from tests.support.variants import Variant, run

RIGHT = [{"lr": (0.025).hex()}]
"""The learning rate of 0.1 after two epochs that halve it."""


def test_result_equals_the_official_fix():
    result = run("scheduler_choices", Variant("pytorch-lightning", "1.9.0"), fresh=True)
    assert result.ok, result
    assert result.observations == RIGHT


@pytest.mark.parametrize(
    ("version", "status", "said"), [("1.6.5", 1, "Could not generate a config for"), ("1.8.6", 2, "lr_scheduler")]
)
def test_stock_refuses_the_schedulers(version, status, said):
    result = run("scheduler_choices", Variant("pytorch-lightning", version), fresh=True)
    assert result.status == status and said in result.output, result


@pytest.mark.parametrize(
    ("version", "case"),
    [
        (version, case)
        for version in ("1.6.5", "1.7.7", "1.8.6")
        for case in ("", "by its path", "of one class")
        if (version, case) != ("1.6.5", "by its path")  # which 1.6 refuses with torch 1.13, too
    ],
)
def test_they_are_taken(version, case):
    shim = run("scheduler_choices", Variant("pytorch-lightning", version, shim=True), case=case, fresh=True)
    assert shim.ok, shim
    assert shim.observations == RIGHT
