from tests.support.programs import Program, only, sees

PROGRAM = Program("csv-logger-appends", "2.0.9")

# Also with a column that is added later, and if another process has written the file.
test_checkpoint_file_is_unchanged = PROGRAM.unchanged(
    "columns",
    "touched",
    on=("1.8.6", "2.0.0", "2.0.9"),
    distribution="pytorch-lightning",
    check=sees(lambda seen: len(seen["rows"]) == 8),
    observed=only("rows"),
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["again"] and len(seen["rows"]) == 60),
    right=sees(lambda seen: not seen["again"] and len(seen["rows"]) == 60),
)
