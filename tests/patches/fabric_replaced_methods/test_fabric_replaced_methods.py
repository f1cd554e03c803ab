from tests.equivalence.proof import Proof, ends_with, sees
from tests.support.variants import Variant, run


def saw(expected):
    return sees(lambda rank: rank["seen"] == expected)


# The wrapper's method is still called: it converts the input, and passes additional arguments.
still_converted = saw("forward got torch.bfloat16")
passes_arguments_on = ends_with("state_dict() got an unexpected keyword argument 'destination'")
PROOFS = (
    Proof("fabric-replaced-methods", still_converted, "forward", since="2.1.0", right=saw("forward got torch.float32")),
    Proof("fabric-replaced-methods", passes_arguments_on, "state_dict", since="2.1.0", right=saw("no state")),
)


def look(variant, case):
    return run("fabric_replaced_methods", variant, case, toggle="fabric-replaced-methods" if variant.shim else None)


def test_other_attributes_are_set_as_on_stock():
    variants = (Variant("lightning", "2.2.1"), Variant("lightning", "2.2.1", shim=True), Variant("lightning", "2.2.2"))
    stock, shim, fixed = (look(variant, "added").observations for variant in variants)
    assert stock == shim == fixed
    assert stock[0]["set_on_model"]["added"] is True


def test_property_of_the_wrapper_is_set_on_the_model():
    for version in ("2.1.0", "2.2.1"):
        stock, shim = (look(Variant("lightning", version, shim=on), "device").observations for on in (False, True))
        assert shim == stock and stock[0]["seen"] == ["cpu", "float"]
