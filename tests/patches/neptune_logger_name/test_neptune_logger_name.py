from tests.support.programs import Program, ends_with

PROGRAM = Program("neptune-logger-name", "2.6.6", alone=True)

PROOFS = PROGRAM.proofs(ends_with("has no attribute 'NeptuneLogger'"), recommended="module")


def test_first_use_reports_the_removal():
    result = PROGRAM.shim("use")
    assert not result.ok and "sunset" in result.observations[0]["error"], result


def test_other_names_are_missing_as_on_stock():
    result = PROGRAM.shim("other")
    assert not result.ok and "no attribute 'SaturnLogger'" in result.observations[0]["error"], result
