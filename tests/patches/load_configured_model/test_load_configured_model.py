from tests.support.programs import Program, only, sees

PROGRAM = Program("load-configured-model", "2.1.4")

test_loadable_checkpoint_is_loaded_as_on_stock = PROGRAM.unchanged(
    "early", "lax", "odd", check=sees(lambda seen: seen["error"] is None)
)


def test_error_is_unchanged_if_configure_model_makes_no_difference():
    stock, shim = (result.facts for result in PROGRAM.both("other"))
    assert "Unexpected key(s) in state_dict" in stock["error"]
    assert shim["error"] == stock["error"] and shim["own"]


PROOFS = (
    PROGRAM.proof(
        sees(lambda seen: "Unexpected key(s) in state_dict" in (seen["error"] or "")),
        since="2.1.0",
        observed=only("error", "same", "bias"),
        right=sees(lambda seen: seen["error"] is None and seen["same"]),
    ),
    PROGRAM.proof(
        sees(lambda seen: "object has no attribute 'head'" in (seen["error"] or "")),
        case="hook",
        since="2.1.0",
        observed=only("error", "same", "bias"),
        right=sees(lambda seen: seen["error"] is None and seen["same"]),
    ),
)
