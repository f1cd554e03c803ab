from tests.differential.trial import difference
from tests.support.programs import Program, only, sees

NAME = "resume-configured-model"
PROGRAM = Program(NAME, "2.1.4", alone=True)

test_loadable_checkpoint_is_loaded_as_on_stock = PROGRAM.unchanged(
    "early", check=sees(lambda seen: seen["same"] and seen["calls"] == ["on_load_checkpoint", "configure_model"])
)


def test_mismatched_checkpoint_raises_the_same_error():
    stock, shim = (result.facts for result in PROGRAM.both("other"))
    assert "Unexpected key(s) in state_dict" in stock["error"]
    assert shim["error"] == stock["error"]


def test_model_that_recreates_its_layer_is_configured_once():
    shim = PROGRAM.shim("fresh").facts
    assert shim["same"] and shim["calls"].count("configure_model") == 1


def test_model_without_configure_model_sees_no_new_calls():
    assert not difference("resumed", "2.1.4", NAME, "properties")


SHOWN = sees(lambda seen: "Unexpected key(s) in state_dict" in (seen["error"] or ""))
OBSERVED = only("error", "same", "steps", "seen")
PROOFS = PROGRAM.proofs(
    SHOWN,
    "fit",
    "test",
    "fresh",
    since="2.1.0",
    observed=OBSERVED,
    right=sees(lambda seen: seen["error"] is None and seen["same"] and seen["seen"] == 1),
)
