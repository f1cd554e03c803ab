from tests.support.programs import Program, sees

PROGRAM = Program("slurm-signal-at-batch-end", "2.6.6")
test_signal_outside_of_a_step_is_handled_as_on_stock = PROGRAM.unchanged("validation", "none", "by-hand")


def test_ranks_save_after_the_same_whole_batch():
    result = PROGRAM.shim("ranks")
    assert result.ok, result
    assert result.observations == [{"step": 3, "weights": [3, 3], "ended_at": 6}] * 2


def saves(step, *weights):
    return sees(lambda seen: seen["step"] == step and seen["weights"] == list(weights))


PROOFS = PROGRAM.proofs(saves(2, 3, 2), "step", right=saves(3, 3, 3), recommended="by-hand")
