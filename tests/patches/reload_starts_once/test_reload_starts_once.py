from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program

NAME = "reload-starts-once"
PROGRAM = Program(NAME, "2.6.6")

test_run_without_reloaded_loaders_is_unchanged = PROGRAM.unchanged("kept")


def starts(number):
    return sees(lambda seen: seen["starts"] == number)


PROOFS = proofs(NAME, starts(5), recommended="kept", right=starts(3))
