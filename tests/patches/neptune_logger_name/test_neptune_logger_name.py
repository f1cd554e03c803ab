from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.programs import Program

PROGRAM = Program("neptune-logger-name", "2.6.6", alone=True)

PROOFS = (Proof("neptune-logger-name", ends_with("has no attribute 'NeptuneLogger'"), recommended="module"),)


def test_first_use_reports_the_removal():
    result = PROGRAM.shim("use")
    assert not result.ok and "sunset" in result.observations[0]["error"], result


test_other_names_are_missing_as_on_stock = PROGRAM.unchanged(
    "other", check=sees(lambda seen: "no attribute 'SaturnLogger'" in seen["error"]), ends_well=False
)

test_patch_is_opt_in = PROGRAM.unchanged(ends_well=False, toggle="default")
