from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("mlflow-finished-status", "1.8.6")

test_run_that_ends_by_itself_is_unchanged = PROGRAM.unchanged("done")

PROOFS = PROGRAM.proofs(
    ends_with("Could not get run status corresponding to string finished"),
    right=observes({"statuses": ["FINISHED", "FINISHED"], "steps": 3, "saved": ["hpc_ckpt_1.ckpt"], "requeued": True}),
)
