import pytest

from tests.support.programs import Program, sees

PROGRAM = Program("csv-logger-step", "2.6.6", "pytorch-lightning")


def steps(version, case="", shim=False):
    result = PROGRAM.run(case, version, shim=shim)
    assert result.ok, result
    seen = result.observations[0]
    assert [float.fromhex(loss) for loss in seen["losses"]] == [0, 1, 2, 3, 4]
    return seen["steps"]


@pytest.mark.parametrize("version", ["2.1.0", "2.6.6"])
@pytest.mark.parametrize(("case", "stock"), [("", [0, 1, 0, 1, 0]), ("every", [0, 0, 0, 0, 0])])
def test_steps_continue_after_the_file_is_written(version, case, stock):
    assert steps(version, case) == stock
    assert steps(version, case, shim=True) == steps(version, "step") == steps("2.0.9", case) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("version", ["2.1.0", "2.6.6"])
def test_given_steps_are_logged_unchanged(version):
    assert steps(version, "step") == steps(version, "step", shim=True)
    assert steps(version, "mixed", shim=True) == [0, 1, 2, 3, 4]


test_custom_writer_receives_the_arguments_of_stock = PROGRAM.unchanged(
    "stand-in", check=sees(lambda seen: seen["called"])
)

PROOFS = (
    PROGRAM.proof(sees(lambda seen: seen["steps"][2] == 0), recommended="step"),
    PROGRAM.proof(sees(lambda seen: seen["steps"][1] == 0), case="every", recommended="step"),
)
