"""PR 20221: LightningCLI, and both the model and the datamodule save their hyperparameters."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run

CONFLICT = "RuntimeError: Error while merging hparams: the keys ['{}'] are present"


def seen(version, case, shim=False):
    result = run("cli_both_save_hyperparameters", Variant("lightning", version, shim), case)
    assert result.ok, result
    return result.observations[0]


def test_both_are_logged():
    assert seen("2.4.0", "both")["error"].startswith(CONFLICT.format("_class_path"))
    shim = seen("2.4.0", "both", shim=True)
    assert shim == seen("2.5.0", "both")
    assert shim["error"] is None and (shim["logged"]["width"], shim["logged"]["batch_size"]) == (2, 1)


@pytest.mark.parametrize("case", ["model", "unlogged", "by hand", "conflict"])
def test_logged_and_refused_hyperparameters_are_unchanged(case):
    stock = seen("2.4.0", case)
    if case == "conflict":
        assert stock["error"].startswith(CONFLICT.format("width"))
    else:
        assert ("_class_path" in stock["logged"]) == (case != "by hand")
    assert seen("2.4.0", case, shim=True) == stock


FAILS = sees(lambda seen: (seen["error"] or "").startswith(CONFLICT.format("_class_path")))
PROOFS = (Proof("cli-both-save-hyperparameters", FAILS, case="both"),)
