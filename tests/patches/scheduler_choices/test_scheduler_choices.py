import pytest

from tests.support.programs import Program, ends_with

PROGRAM = Program("scheduler-choices", "1.9.0", options={"fresh": True})

PROOFS = PROGRAM.proofs(ends_with("lr_scheduler"), fresh=True)

RIGHT = {"lr": (0.025).hex()}
"""The learning rate of 0.1 after two epochs that halve it."""


def test_official_fix_accepts_the_schedulers():
    assert PROGRAM.stock().facts == RIGHT


@pytest.mark.parametrize(
    ("version", "status", "said"), [("1.6.5", 1, "Could not generate a config for"), ("1.8.6", 2, "lr_scheduler")]
)
def test_stock_refuses_the_schedulers(version, status, said):
    result = PROGRAM.stock(version=version)
    assert result.status == status and said in result.output, result


@pytest.mark.parametrize(
    ("version", "case"),
    [
        (version, case)
        for version in ("1.6.5", "1.7.7", "1.8.6")
        for case in ("", "by its path", "of one class")
        if (version, case) != ("1.6.5", "by its path")  # 1.6 refuses this with torch 1.13, too
    ],
)
def test_patch_accepts_the_schedulers(version, case):
    assert PROGRAM.shim(case, version).facts == RIGHT
