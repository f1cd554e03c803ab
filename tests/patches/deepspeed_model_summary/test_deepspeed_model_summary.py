"""Issue 21231: the summary of a model under DeepSpeed's stage 3 asks for counts of FLOPs that there are not."""

from tests.equivalence.proof import Proof, ends_with, only, sees
from tests.support.variants import Variant, run


def test_custom_count_of_a_program_is_kept():
    stock, shim = (run("deepspeed_model_summary", Variant("lightning", "2.5.6", shim), "own") for shim in (False, True))
    assert stock.observations == shim.observations
    (seen,) = shim.observations
    assert seen["counts"] == ["7"] and seen["left"] is None


PROOFS = tuple(
    Proof(
        "deepspeed-model-summary",
        ends_with("'DeepSpeedSummary' object has no attribute 'flop_counts'"),
        case,
        observed=only("table"),
        right=sees(lambda seen: seen["table"]["Params per Device"][0] == "33"),
        note="The column of FLOPs, a feature of 2.6.0, is left out of the comparison.",
    )
    for case in ("", "input", "leftover")
)
