from tests.support.programs import Program, sees

PROGRAM = Program("legacy-checkpoint-threads", "2.0.2")

# With 2.0.3 the forked process, and a nested load, wait forever.
test_loads_without_contention_are_unchanged = PROGRAM.unchanged("error", "one after the other", "nested")
test_load_in_forked_process_is_unchanged = PROGRAM.unchanged(
    "fork", check=sees(lambda seen: seen["found"]["child"] == seen["found"]["first"])
)

FAILS = sees(lambda seen: seen["found"]["first"].startswith("KeyError: "))
LOADS = sees(lambda seen: not any("Error" in value for value in seen["found"].values()) and not seen["left"])
PROOFS = PROGRAM.proofs(FAILS, "model", "context", right=LOADS)
