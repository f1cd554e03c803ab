"""PR 18951: a batch norm layer that the model has put into evaluation mode is put back into training mode."""

from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run

NAME = "eval-mode-kept"


def test_nothing_is_warned_of_where_the_mode_is_kept():
    result = run(
        "eval_mode_kept", Variant("pytorch-lightning", "2.1.4", shim=True), "validated", toggle=f"default,{NAME}"
    )
    assert result.observations[0]["warnings"] == [], result


def test_hook_that_switches_to_training_mode_takes_effect_as_in_2_2():
    shim, official = (
        run("eval_mode_kept", Variant("pytorch-lightning", version, on), "hook", toggle=NAME if on else None)
        for version, on in (("2.1.4", True), ("2.2.0", False))
    )
    assert official.observations[0]["moved"]
    assert shim.observations[0]["modes"] == official.observations[0]["modes"]


PROOFS = tuple(
    Proof(
        NAME,
        sees(lambda seen: seen["moved"] and seen["modes"][0] == [True, True, True]),
        case=case,
        observed=only("modes", "moved"),
        right=sees(lambda seen: not seen["moved"] and seen["modes"] == 4 * [[True, True, False]]),
    )
    for case in ("fit", "validated", "predicted")
)
