from tests.support.programs import Program, observes, sees

ENDS = {"ended": True, "well": False, "done": False}
DONE = {"ended": True, "well": True, "done": True}

PROGRAM = Program("dead-rank-ends-job", "2.0.9", "pytorch-lightning", alone=True, options={"timeout": 300})


def test_killed_rank_ends_the_job():
    shim = PROGRAM.shim("killed")
    assert shim.facts == ENDS and "ended with status -9" in shim.output


test_job_without_a_dead_rank_is_unchanged = PROGRAM.unchanged("well", check=observes(DONE))
test_patch_is_opt_in_since_it_ends_a_working_rank_zero = PROGRAM.unchanged(
    "late", check=observes(DONE), toggle="default"
)


def test_rank_zero_that_still_works_is_ended_when_another_rank_dies():
    assert PROGRAM.shim("late").facts == ENDS


PROOFS = PROGRAM.proofs(sees(lambda seen: not seen["ended"]), "trainer", "fabric")
