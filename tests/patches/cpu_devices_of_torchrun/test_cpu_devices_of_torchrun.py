import pytest

from tests.support.programs import Program, sees

pytestmark = pytest.mark.distributed
PROGRAM = Program("cpu-devices-of-torchrun", "2.6.6", options={"timeout": 300})

test_programs_that_choose_their_processes_are_unchanged = PROGRAM.unchanged("one", "one-process", "environment")


@pytest.mark.parametrize("case", ["-ddp", "-object"])
def test_ddp_strategy_is_accepted(case):
    stock, patched = PROGRAM.both(case)
    assert not stock.ok and "does not match the world size (2)" in stock.output
    assert patched.observations == PROGRAM.stock(f"given{case}").observations


PROOFS = PROGRAM.proofs(
    sees(lambda seen: (seen["ranks"], seen["steps"]) == (1, 8)),
    "",
    "-fabric",
    recommended="given{}",
    right=sees(lambda seen: (seen["ranks"], seen["steps"]) == (2, 4)),
)
