from tests.support.programs import Program, only, sees

NAME = "eval-mode-kept"
PROGRAM = Program(NAME, "2.1.4", "pytorch-lightning")


def test_warning_is_absent_where_the_mode_is_kept():
    result = PROGRAM.shim("validated")
    assert result.observations[0]["warnings"] == [], result


def test_hook_that_switches_to_training_mode_takes_effect_as_in_2_2():
    shim, official = (
        PROGRAM.run("hook", version, shim=on, toggle=NAME) for version, on in (("2.1.4", True), ("2.2.0", False))
    )
    assert official.observations[0]["moved"]
    assert shim.observations[0]["modes"] == official.observations[0]["modes"]


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["moved"] and seen["modes"][0] == [True, True, True]),
    "fit",
    "validated",
    "predicted",
    observed=only("modes", "moved"),
    right=sees(lambda seen: not seen["moved"] and seen["modes"] == 4 * [[True, True, False]]),
)
