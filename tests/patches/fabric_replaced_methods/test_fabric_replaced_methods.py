"""PR 19705: a method that is replaced on a model which Fabric has set up is not what is called."""

from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.arms import Arm, run


def saw(expected):
    return sees(lambda rank: rank["seen"] == expected)


# The wrapper's own method is called still: it converts the input, and passes arguments on that nobody gave it.
still_converted = saw("forward got torch.bfloat16")
passes_arguments_on = ends_with("state_dict() got an unexpected keyword argument 'destination'")
PROOFS = (
    Proof("fabric-replaced-methods", still_converted, "forward", since="2.1.0", right=saw("forward got torch.float32")),
    Proof("fabric-replaced-methods", passes_arguments_on, "state_dict", since="2.1.0", right=saw("no state")),
)


def look(arm, case):
    return run("fabric_replaced_methods", arm, case, toggle="fabric-replaced-methods" if arm.shim else None)


def test_other_attributes_go_where_they_went():
    arms = (Arm("lightning", "2.2.1"), Arm("lightning", "2.2.1", shim=True), Arm("lightning", "2.2.2"))
    stock, shim, fixed = (look(arm, "added").observations for arm in arms)
    assert stock == shim == fixed
    assert stock[0]["set_on_model"]["added"] is True


def test_what_the_wrapper_has_as_a_property_is_set_on_the_model():
    for version in ("2.1.0", "2.2.1"):
        stock, shim = (look(Arm("lightning", version, shim=on), "device").observations for on in (False, True))
        assert shim == stock and stock[0]["seen"] == ["cpu", "float"]
