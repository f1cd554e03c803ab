from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program
from tests.support.variants import Variant, run

PROGRAM = Program("stateful-loader-restored", "2.6.6")

test_correct_training_is_unchanged = PROGRAM.unchanged("not-estimated", "fresh")


def test_manually_loaded_state_is_replaced_as_in_the_fixed_release():
    """The checkpoint's state, of batch 2, replaces it."""
    stock, shim, right = (
        run("stateful_loader_state_by_hand", Variant("lightning", "2.6.6", on), case)
        for on, case in ((False, "estimated"), (True, "estimated"), (False, "not-estimated"))
    )
    assert stock.ok and stock.observations == [{"restored": [4], "seen": [5, 6, 1, 2]}], stock
    assert shim.ok and shim.observations == [{"restored": [4, 2], "seen": [3, 4, 5, 6]}] == right.observations, shim


test_release_without_loader_states_is_unchanged = PROGRAM.unchanged(
    "estimated", on=("2.1.4",), distribution="pytorch-lightning"
)

PROOFS = proofs(
    "stateful-loader-restored",
    sees(lambda seen: seen["restored"] == [] and seen["seen"][0] == 1),
    "estimated",
    recommended="not-estimated",
    since="2.2.0",
    right=sees(lambda seen: len(seen["restored"]) == 1 and seen["seen"][0] > 1),
)
