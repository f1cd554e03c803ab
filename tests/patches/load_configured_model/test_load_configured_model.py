"""PR 19036: load_from_checkpoint does not call configure_model."""

import pytest

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


def seen(case, shim=False, version="2.1.4"):
    result = run("load_configured_model", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize("case", ["early", "lax", "odd"])
def test_loadable_checkpoint_is_loaded_as_on_stock(case):
    stock = seen(case)
    assert stock["error"] is None
    assert seen(case, shim=True) == stock


def test_error_is_unchanged_if_configure_model_does_not_help():
    stock, shim = seen("other"), seen("other", shim=True)
    assert "Unexpected key(s) in state_dict" in stock["error"]
    assert shim["error"] == stock["error"] and shim["own"]


PROOFS = (
    Proof(
        "load-configured-model",
        sees(lambda seen: "Unexpected key(s) in state_dict" in (seen["error"] or "")),
        since="2.1.0",
        observed=only("error", "same", "bias"),
        right=sees(lambda seen: seen["error"] is None and seen["same"]),
    ),
    Proof(
        "load-configured-model",
        sees(lambda seen: "object has no attribute 'head'" in (seen["error"] or "")),
        case="hook",
        since="2.1.0",
        observed=only("error", "same", "bias"),
        right=sees(lambda seen: seen["error"] is None and seen["same"]),
    ),
)
