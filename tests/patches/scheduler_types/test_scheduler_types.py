import pytest

from tests.support.programs import Program, ends_with

PROGRAM = Program("scheduler-types", "1.9.5", options={"fresh": True})

PROOFS = PROGRAM.proofs(ends_with("doesn't follow PyTorch's LRScheduler API"), fresh=True)

WORDS = {"1.5.10": 'The provided lr scheduler "<torch', "1.6.5": "doesn't follow PyTorch's LRScheduler API"}


def test_official_fix_halves_the_rate_in_each_epoch():
    assert PROGRAM.stock().facts == {"lr": (0.0125).hex()}


@pytest.mark.parametrize("case", ["", "every step", "plateau"])
@pytest.mark.parametrize("version", ["1.5.10", "1.6.5", "1.7.7", "1.8.3"])
def test_patch_accepts_the_schedulers(version, case):
    assert PROGRAM.shim(case, version).facts == PROGRAM.stock(case).facts


@pytest.mark.parametrize("version", WORDS)
def test_stock_refuses_the_schedulers(version):
    result = PROGRAM.stock(version=version)
    assert not result.ok and WORDS[version] in result.output, result
