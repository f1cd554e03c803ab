from tests.differential.trial import difference
from tests.support.programs import Program, sees

PROGRAM = Program("manual-optimizer-state", "2.0.0", alone=True)


def test_wrapping_optimizer_steps():
    assert not difference("wrapping_optimizer", "2.0.0", "manual-optimizer-state")


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["used"][-1] == [(0.1).hex()]),
    "resume",
    right=sees(lambda seen: seen["used"][-1] == [(0.05).hex()]),
)

test_changed_learning_rate_is_used_by_several_optimizers = PROGRAM.fixed(
    "several",
    bug=sees(lambda seen: seen["used"][-1][0] == (0.1).hex()),
    right=sees(lambda seen: seen["used"][-1][0] == (0.05).hex()),
    like="2.0.7",
)
