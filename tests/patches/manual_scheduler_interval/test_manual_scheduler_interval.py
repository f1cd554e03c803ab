import pytest

from tests.support.programs import Program, observes, sees

PROGRAM = Program("manual-scheduler-interval", "1.8.6")


def _rates(*steps):
    return [[step, (0.5**step).hex()] for step in steps]


@pytest.mark.parametrize("case", ["", "epoch"])
def test_rates_are_logged_once_per_epoch_unless_the_interval_is_a_step(case):
    stock, shim = (result.facts for result in PROGRAM.both(case))
    assert shim == stock == {"rates": _rates(0, 2), "frequency": 1}


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["rates"] == _rates(0, 2)),
    "step",
    right=observes({"rates": _rates(0, 1, 2, 3), "frequency": 1}),
)
