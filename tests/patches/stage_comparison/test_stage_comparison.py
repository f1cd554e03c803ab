import pytest

from tests.support.programs import Program, only, sees

PROGRAM = Program("stage-comparison", "2.6.6", alone=True)


@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_each_hook_sees_the_stage_of_stock(version):
    (stock,), (shim,) = PROGRAM.counts("plain", version)
    assert stock > 50 and shim < 5


test_other_stages_compare_as_on_stock = PROGRAM.unchanged(
    "others", "compiled", on=("2.0.0", "2.6.6"), observed=only("seen"), check=sees(lambda seen: seen["seen"])
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["counted"] > 50),
    "plain",
    observed=lambda ranks: [{**rank, "counted": rank["counted"] > 50} for rank in ranks],
    recommended_observed=lambda ranks: [{**rank, "counted": False} for rank in ranks],
)
