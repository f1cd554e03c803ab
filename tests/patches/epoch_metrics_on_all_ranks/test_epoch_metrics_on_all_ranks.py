from tests.support.programs import Program

PROGRAM = Program("epoch-metrics-on-all-ranks", "2.6.6")

test_program_that_needs_no_fix_is_unchanged = PROGRAM.unchanged("no-hook", "own-bar", "single")


def _is_right(result):
    """True if both ranks have the mean of both ranks."""
    right = {"metric": [(1.0).hex(), (1.0).hex()], "loss": (3.0).hex()}
    return result.ok and result.observations == [right, right]


PROOFS = PROGRAM.proofs(lambda result: not _is_right(result), "bar", recommended="no-bar", right=_is_right)
