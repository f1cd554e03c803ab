import pytest

from tests.equivalence.proof import only
from tests.support.programs import Program

PROGRAM = Program("warn-logged-keys-differ", "2.6.6", "pytorch-lightning")

pytestmark = pytest.mark.distributed


def seen(version, case, shim=True):
    result = PROGRAM.run(case, version, shim=shim)
    assert result.ok, result
    return [rank["values"] for rank in result.observations], [rank["warnings"] for rank in result.observations]


@pytest.mark.parametrize(
    ("version", "case", "names"),
    [
        ("2.6.6", "epoch", ("even", "odd")),
        ("2.6.6", "turns", ("even", "odd")),
        ("2.6.6", "order", ("even, odd", "odd, even")),
        ("2.6.6", "metric", ("even", "odd")),
        ("2.0.0", "step", ("even", "odd")),
        ("2.0.0", "hook", ("even", "odd")),
    ],
)
def test_warning_lists_the_names_of_each_rank(version, case, names):
    values, warnings = seen(version, case)
    assert {value for of_rank in values for value in of_rank.values()} == {15}
    ((rank, warning),) = [(rank, said) for rank, of_rank in enumerate(warnings) for said in of_rank]
    assert f"rank {rank} has logged ({names[rank]}), rank {1 - rank} ({names[1 - rank]})." in warning


test_selected_patch_changes_no_value = PROGRAM.unchanged(
    "epoch",
    observed=only("values"),
    check=lambda result: [rank["values"] for rank in result.observations] == [{"even": 15}, {"odd": 15}],
)


@pytest.mark.parametrize("case", ["same", "local", "first", "computed"])
def test_warning_is_absent_if_ranks_log_the_same_names(case):
    assert seen("2.6.6", case)[1] == [[], []]
