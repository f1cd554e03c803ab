from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("lr-finder-skipped-batch", "2.0.6")

test_search_without_skipped_batches_is_unchanged = PROGRAM.unchanged(
    "all", check=sees(lambda seen: seen["skipped"] == [])
)

PROOFS = PROGRAM.proofs(ends_with("KeyError: 'loss'"), right=sees(lambda seen: seen["skipped"] == [2]))
