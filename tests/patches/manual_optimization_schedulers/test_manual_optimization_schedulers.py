from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("manual-optimization-schedulers", "2.0.5")

REFUSED = "doesn't follow PyTorch's LRScheduler API"


def test_automatic_optimization_still_refuses_the_scheduler():
    assert all(map(ends_with(REFUSED), PROGRAM.both("automatic")))


PROOFS = PROGRAM.proofs(ends_with(REFUSED), right=observes({"rate": (0.25).hex()}))
