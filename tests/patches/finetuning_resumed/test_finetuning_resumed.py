import pytest

from tests.support.programs import Program, only, sees

PROGRAM = Program("finetuning-resumed", "2.6.6", "pytorch-lightning", alone=True)
WARNING = "Unfreeze them in on_fit_start of your finetuning callback"
RELEASES = ["2.0.0", "2.6.6"]


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("case", ["before", "later", "own", "again", "refrozen", "thawed", "idle"])
def test_other_runs_train_as_on_stock(version, case):
    stock, shim = (result.facts for result in PROGRAM.both(case, version))
    warnings = shim["warnings"]
    assert shim == {**stock, "warnings": warnings}
    assert stock["as_without_a_break"] == (case in ("before", "again", "refrozen", "idle"))
    # It is unknown if the freeze was intended, as in "refrozen".
    assert [WARNING in one for one in warnings] == ([] if case in ("before", "again", "idle") else [True])


def test_jobs_with_several_ranks_get_a_warning():
    shim = PROGRAM.shim("ranks").facts
    assert not shim["trained"]
    (warning,) = shim["warnings"]
    assert "Never freeze them, and give them a parameter group with lr=0" in warning


PROOFS = PROGRAM.proofs(
    sees(lambda seen: not seen["trained"] and not seen["as_without_a_break"]),
    "resumed",
    "everything",
    recommended="{}-by-hand",
    observed=only("trained", "as_without_a_break", "backbone", "head"),
    right=sees(lambda seen: seen["as_without_a_break"]),
)
