import pytest

from tests.support.programs import Program, only

PROGRAM = Program("warn-logged-keys-differ", "2.6.6", "pytorch-lightning")

pytestmark = pytest.mark.distributed


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
    shim = PROGRAM.shim(case, version)
    assert shim.ok and {value for seen in shim.observations for value in seen["values"].values()} == {15}, shim
    ((rank, warning),) = [(rank, said) for rank, seen in enumerate(shim.observations) for said in seen["warnings"]]
    assert f"rank {rank} has logged ({names[rank]}), rank {1 - rank} ({names[1 - rank]})." in warning


test_selected_patch_changes_no_value = PROGRAM.unchanged(
    "epoch",
    observed=only("values"),
    check=lambda result: [rank["values"] for rank in result.observations] == [{"even": 15}, {"odd": 15}],
)


test_warning_is_absent_if_ranks_log_the_same_names = PROGRAM.unchanged("same", "local", "first", "computed")
