"""PR 19060: the Trainer loads a checkpoint before it calls configure_model."""

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run

NAME = "resume-configured-model"


def seen(case, shim=False, version="2.1.4"):
    result = run("resume_configured_model", Variant("lightning", version, shim), case, toggle=NAME if shim else None)
    assert result.ok, result
    return result.observations[0]


def test_loadable_checkpoint_is_loaded_as_on_stock():
    stock = seen("early")
    assert stock["same"] and stock["calls"] == ["on_load_checkpoint", "configure_model"]
    assert seen("early", shim=True) == stock


def test_mismatched_checkpoint_raises_the_same_error():
    stock, shim = seen("other"), seen("other", shim=True)
    assert "Unexpected key(s) in state_dict" in stock["error"]
    assert shim["error"] == stock["error"]


def test_model_that_recreates_its_layer_is_configured_once():
    shim = seen("fresh", shim=True)
    assert shim["same"] and shim["calls"].count("configure_model") == 1


def test_model_without_configure_model_sees_no_new_calls():
    assert not difference("resumed", "2.1.4", NAME, "properties")


SHOWN = sees(lambda seen: "Unexpected key(s) in state_dict" in (seen["error"] or ""))
OBSERVED = only("error", "same", "steps", "seen")
PROOFS = tuple(
    Proof(
        NAME,
        SHOWN,
        case=case,
        since="2.1.0",
        observed=OBSERVED,
        right=sees(lambda seen: seen["error"] is None and seen["same"] and seen["seen"] == 1),
    )
    for case in ("fit", "test", "fresh")
)
