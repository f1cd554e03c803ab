"""Issue 20230: fit with a checkpoint that was saved with save_weights_only=True."""

import pytest

from tests.equivalence.proof import Proof, ends_with, only
from tests.support.variants import Variant, run

PROOFS = tuple(
    Proof(
        "fit-on-weights-alone",
        ends_with("Trying to restore optimizer state but checkpoint contains only the model"),
        case=case,
        observed=only("seen", "weights", "lr"),
        recommended=f"{case}-by-hand" if case else "by-hand",
        note="That a warning says so is left out.",
    )
    for case in ("", "steps")
)


def test_warning_reports_the_missing_optimizer_state():
    result = run("fit_on_weights_alone", Variant("lightning", "2.6.6", shim=True), toggle="fit-on-weights-alone")
    assert result.ok, result
    (said,) = result.observations[0]["warnings"]
    assert "begin anew" in said


@pytest.mark.parametrize("case", ["whole", "part"])
def test_other_checkpoints_are_loaded_or_refused_as_on_stock(case):
    stock, shim = (
        run(
            "fit_on_weights_alone",
            Variant("lightning", "2.6.6", on),
            case,
            toggle="fit-on-weights-alone" if on else None,
        )
        for on in (False, True)
    )
    assert stock.ok is shim.ok is (case == "whole")
    assert stock.observations == shim.observations


def test_patch_is_opt_in():
    assert not run("fit_on_weights_alone", Variant("lightning", "2.6.6", shim=True)).ok
