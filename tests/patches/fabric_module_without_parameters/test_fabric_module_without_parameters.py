from tests.equivalence.proof import ends_with, proofs, sees
from tests.support.variants import Variant, run

CASES = ("setup", "setup_stay", "setup_module", "setup_module_stay")
PROOFS = proofs(
    "fabric-module-without-parameters",
    ends_with("StopIteration"),
    *CASES,
    right=sees(lambda seen: seen["state"] == ["weight"]),
)


def test_module_has_no_more_parameter_calls_than_on_stock():
    variants = (Variant("pytorch-lightning", "2.0.1", shim=on) for on in (False, True))
    stock, shim = (run("fabric_module_without_parameters", variant, "asked") for variant in variants)
    assert stock.ok and shim.observations == stock.observations, (stock, shim)
