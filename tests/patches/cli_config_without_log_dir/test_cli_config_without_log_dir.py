from tests.support.programs import Program, sees

PROGRAM = Program("cli-config-without-log-dir", "2.6.6")

test_program_that_needs_no_fix_is_unchanged = PROGRAM.unchanged("no-logger", "not-in-log-dir", "csv")


def test_config_of_a_previous_run_is_not_overwritten():
    shim = PROGRAM.shim("again")
    assert not shim.ok and "config.yaml to NOT exist" in shim.observations[0]["error"]


def test_save_config_of_a_subclass_is_called_once():
    assert PROGRAM.shim("own").observations == [{"configs": 1, "steps": 1, "saved": 1}]


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen.get("error", "").startswith("AssertionError")),
    "remote",
    recommended="no-logger",
    right=sees(lambda seen: seen["configs"] == 1),
)
