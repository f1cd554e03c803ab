import pytest

from tests.support.programs import Program, only

pytestmark = pytest.mark.distributed
PROGRAM = Program("ranks-of-a-zipapp", "2.6.6", options={"timeout": 300})

BUG = "module specification for '__main__'"

test_other_programs_start_as_on_stock = PROGRAM.unchanged("script", "package")
test_ranks_of_a_directory_start = PROGRAM.fixed("directory", bug=lambda result: BUG in result.output)

PROOFS = PROGRAM.proofs(
    lambda result: not result.ok and BUG in result.output,
    "archive",
    recommended="torchrun",
    observed=only("ranks", "options"),
    right=lambda result: [rank["ranks"] for rank in result.observations] == [2, 2],
)
