from tests.support.programs import Program, sees

PROGRAM = Program("copy-during-training", "2.0.0")

CASES = ("deepcopy", "pickle", "trainer", "workers")

test_picklable_module_is_unchanged = PROGRAM.unchanged("loader", "after")

FAILS = sees(lambda seen: "cannot be pickled" in (seen["error"] or ""))
COPIES = sees(lambda seen: seen["equal"] and seen["steps"] == 4)
PROOFS = PROGRAM.proofs(FAILS, *CASES, right=COPIES)
