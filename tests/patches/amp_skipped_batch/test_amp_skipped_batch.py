from tests.support.programs import Program, ends_with

PROGRAM = Program("amp-skipped-batch", "2.0.6")

AGAIN = "unscale_() has already been called on this optimizer since the last update()"
TOO_EARLY = "Attempted unscale_ but _scale is None"
PROOFS = (PROGRAM.proof(ends_with(TOO_EARLY), "first"), PROGRAM.proof(ends_with(AGAIN), "row"))

test_training_without_skips_is_unchanged = PROGRAM.unchanged("none_skipped")
