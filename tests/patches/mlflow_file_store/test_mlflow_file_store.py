from tests.support.programs import Program, ends_with, only

PROGRAM = Program("mlflow-file-store", "2.6.6")
test_other_stores_are_unchanged = PROGRAM.unchanged("allowed", "database")
test_given_directory_is_refused_as_on_stock = PROGRAM.unchanged("given", ends_well=False)


def test_default_directory_is_warned_of_once():
    (warning,) = PROGRAM.shim().observations[0]["warnings"]
    assert warning.startswith("This run logs into ./mlruns")


PROOFS = PROGRAM.proofs(
    ends_with("set `MLFLOW_ALLOW_FILE_STORE=true`"), recommended="allowed", observed=only("run", "allowed")
)
