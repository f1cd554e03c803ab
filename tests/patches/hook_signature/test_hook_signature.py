import pytest

from tests.support.programs import Program, sees

PROGRAM = Program("hook-signature", "2.6.6", alone=True)


@pytest.mark.parametrize("case", ["none", "varargs", "keyword", "loaders", "iterator"])
@pytest.mark.parametrize("version", ["2.0.0", "2.6.6"])
def test_each_step_gets_the_arguments_of_stock(version, case):
    (stock,), (shim,) = PROGRAM.counts(case, version)
    assert stock > shim


@pytest.mark.parametrize("case", ["partial", "wrapped", "signature", "instance"])
def test_other_steps_are_inspected_as_on_stock(case):
    (stock,), (shim,) = PROGRAM.counts(case)
    assert stock >= shim > 0 or case == "instance"


PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["counted"] > 4),
    "plain",
    observed=lambda ranks: [{**rank, "counted": rank["counted"] > 0} for rank in ranks],
    recommended_observed=lambda ranks: [{**rank, "counted": False} for rank in ranks],
)
