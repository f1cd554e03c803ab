from tests.differential.trial import difference
from tests.support.programs import COMPILE, Program, sees

PROGRAM = Program("compiled-names", "2.6.6", "pytorch-lightning")

# The weights stay unchanged, since a program may catch the error and continue to train.
test_strict_load_still_requires_all_other_names = PROGRAM.unchanged(
    "other",
    "missing",
    "shape",
    "old",
    "part",
    on=("2.0.0", "2.6.6"),
    check=sees(lambda seen: "Missing key(s)" in seen["error"] and "layer.weight" in seen["untouched"]),
    ends_well=False,
)
test_model_with_a_custom_method_loads = PROGRAM.fixed(
    "own", "bare", bug=lambda result: not result.ok, right=sees(lambda seen: seen["same"])
)
# torch raises no error. Mismatched entries are not loaded.
test_load_that_is_not_strict_is_unchanged = PROGRAM.unchanged("loose", check=sees(lambda seen: not seen["same"]))


def test_model_with_a_traced_part_refuses_as_on_stock():
    assert not difference("traced", "2.6.6", "compiled-names")


PROOFS = tuple(
    PROGRAM.proof(
        lambda result: not result.ok and "_orig_mod" in result.output and "Missing key(s)" in result.output,
        case=case,
        recommended=f"{case}-same",
        right=sees(lambda seen, trains=trains: seen["same"] is not trains),
        needs=(COMPILE,),
    )
    for case, trains in (("load", False), ("test", False), ("fit", True), ("plain", True), ("inner", True))
)
