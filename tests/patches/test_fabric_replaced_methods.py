"""PR 19705: a method that is replaced on a model which Fabric has set up is not what is called."""

import pytest

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.arms import Arm, run

# The wrapper's own method is called still: it converts the input, and passes arguments on that nobody gave it.
still_converted = sees(lambda rank: rank["seen"] == "forward got torch.bfloat16")
passes_arguments_on = ends_with("state_dict() got an unexpected keyword argument 'destination'")
PROOFS = (
    Proof("fabric-replaced-methods", still_converted, "forward", since="2.1.0"),
    Proof("fabric-replaced-methods", passes_arguments_on, "state_dict", since="2.1.0"),
)


def look(arm, case):
    return run("fabric_replaced_methods", arm, case, toggle="fabric-replaced-methods" if arm.shim else None)


@pytest.mark.parametrize(
    ("distribution", "version", "case", "shows_bug", "expected"),
    [
        ("pytorch-lightning", "2.1.0", "forward", still_converted, "forward got torch.float32"),
        ("lightning", "2.2.1", "state_dict", passes_arguments_on, "no state"),
    ],
)
def test_the_replacement_is_called(distribution, version, case, shows_bug, expected):
    stock, shim = (look(Arm(distribution, version, shim=shim), case) for shim in (False, True))
    fixed = look(Arm(distribution, "2.2.2"), case)
    assert shows_bug(stock), stock
    assert shim.ok and fixed.ok, (shim, fixed)
    assert shim.observations[0]["seen"] == expected
    assert shim.observations == fixed.observations


def test_other_attributes_go_where_they_went():
    arms = (Arm("lightning", "2.2.1"), Arm("lightning", "2.2.1", shim=True), Arm("lightning", "2.2.2"))
    stock, shim, fixed = (look(arm, "added").observations for arm in arms)
    assert stock == shim == fixed
    assert stock[0]["set_on_model"]["added"] is True
