from tests.support.programs import Program, Proof, ends_with, everything, only, sees

PROGRAM = Program("weight-averaging-restored", "2.6.6")

test_program_that_needs_no_fix_is_unchanged = PROGRAM.unchanged(
    "resume", "set-both", "rename-both", "trained", "validate", "test-fresh", "whole"
)
test_subclass_that_swaps_the_weights_for_the_test_tests_the_average = PROGRAM.unchanged(
    "test-swap", observed=only("used")
)


def _used(value):
    """Check the last weight that the test or the prediction used."""
    return sees(lambda seen: float.fromhex(seen["used"][-1][0]) == value)


TRAINED = 1 - 6 / 8
"""The weight after the last step, without an average."""


def _proof(case, shows_bug, recommended, observed=everything, right=None):
    return Proof(
        "weight-averaging-restored",
        shows_bug,
        case=case,
        recommended=recommended,
        observed=observed,
        right=right,
        since="2.6.0",
    )


def _scale(value):
    return sees(lambda seen: float.fromhex(seen["used"][0][1]) == value)


PROOFS = (
    _proof("test", _used(TRAINED), "test-fresh", only("used")),
    _proof("predict", _used(TRAINED), "predict-fresh", only("used")),
    _proof("finished", sees(lambda seen: seen["weight"] == [TRAINED.hex()]), "whole", only("weight")),
    _proof("set", _scale(1.0), "set-both", right=_scale(5.0)),
    _proof("rename", ends_with('Missing key(s) in state_dict: "head.weight"'), "rename-both"),
)
