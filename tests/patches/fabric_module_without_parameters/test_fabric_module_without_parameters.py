"""PR 17441: fabric.setup of a module without parameters ends with StopIteration."""

from tests.equivalence.proof import Proof, ends_with, sees

CASES = ("setup", "setup_stay", "setup_module", "setup_module_stay")
PROOFS = tuple(
    Proof(
        "fabric-module-without-parameters",
        ends_with("StopIteration"),
        case,
        right=sees(lambda seen: seen["state"] == ["weight"]),
    )
    for case in CASES
)
