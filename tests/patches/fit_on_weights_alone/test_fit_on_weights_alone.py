from tests.support.programs import Program, ends_with, only

PROGRAM = Program("fit-on-weights-alone", "2.6.6", toggle="fit-on-weights-alone")

PROOFS = tuple(
    PROGRAM.proof(
        ends_with("Trying to restore optimizer state but checkpoint contains only the model"),
        case=case,
        observed=only("seen", "weights", "lr"),
        recommended=f"{case}-by-hand" if case else "by-hand",
        note="That a warning says so is left out.",
    )
    for case in ("", "steps")
)


def test_warning_reports_the_missing_optimizer_state():
    result = PROGRAM.shim()
    assert result.ok, result
    (said,) = result.observations[0]["warnings"]
    assert "start again" in said


test_other_checkpoints_are_loaded_as_on_stock = PROGRAM.unchanged("whole")
test_incomplete_checkpoints_are_refused_as_on_stock = PROGRAM.unchanged("part", ends_well=False)
