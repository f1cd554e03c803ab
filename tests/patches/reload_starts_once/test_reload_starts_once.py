from tests.support.programs import Program, sees

PROGRAM = Program("reload-starts-once", "2.6.6")

test_run_without_reloaded_loaders_is_unchanged = PROGRAM.unchanged("kept")


def starts(number):
    return sees(lambda seen: seen["starts"] == number)


PROOFS = PROGRAM.proofs(starts(5), recommended="kept", right=starts(3))
