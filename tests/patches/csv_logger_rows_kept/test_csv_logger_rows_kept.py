from tests.support.programs import Program, sees

NAME = "csv-logger-rows-kept"
PROGRAM = Program(NAME, "2.6.6", alone=True)

test_first_run_is_unchanged = PROGRAM.unchanged("empty", "versions", toggle=NAME)


def test_column_of_the_resumed_run_is_added():
    found = PROGRAM.shim("columns", toggle=NAME).observations[0]["rows"]
    assert [row["step"] for row in found] == ["0", "1", "2", "3"], found
    assert [row.get("another") for row in found] == [None, None, "1.0", "1.0"], found


PROOFS = PROGRAM.proofs(
    sees(lambda seen: [row["step"] for row in seen["rows"]] == ["2", "3"]),
    "",
    "unsorted",
    recommended="versions",
    right=sees(lambda seen: [row["step"] for row in seen["rows"]] == ["0", "1", "2", "3"]),
)
