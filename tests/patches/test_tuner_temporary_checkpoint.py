"""PR 21758: the finders' own checkpoint, when the hyperparameters hold an object of the user's (torch 2.6)."""

import pytest

from tests.equivalence.proof import Proof, ends_with
from tests.support.arms import Arm, run

SCENARIO, PATCH = "tuner_temporary_checkpoint", "tuner-temporary-checkpoint"
ERROR = "Weights only load failed"


@pytest.mark.parametrize(
    ("distribution", "version", "case", "unaffected"),
    [
        ("pytorch-lightning", "2.0.0", "lr_find", None),
        ("lightning", "2.3.3", "scale_batch_size", "2.4.0"),
        ("pytorch-lightning", "2.6.6", "lr_callback", "2.5.6"),
    ],
)
def test_search_reads_its_own_checkpoint(distribution, version, case, unaffected):
    stock = run(SCENARIO, Arm(distribution, version), case)
    assert not stock.ok, stock
    assert ERROR in stock.output, stock
    shim = run(SCENARIO, Arm(distribution, version, shim=True), case, toggle=PATCH)
    assert shim.ok, shim
    assert shim.observations[0].get("unchanged", True), shim
    if unaffected is not None:
        official = run(SCENARIO, Arm(distribution, unaffected), case)
        assert official.ok, official
        assert shim.observations == official.observations, (shim, official)


def test_no_other_file_is_trusted_for_its_name():
    shim = run(SCENARIO, Arm("lightning", "2.6.6", shim=True), "user_file", toggle=PATCH)
    assert not shim.ok, shim
    assert "1 fix" in shim.output, shim
    assert ERROR in shim.output, shim


PROOFS = (
    Proof(
        "tuner-temporary-checkpoint",
        ends_with("Weights only load failed"),
        case="lr_callback",
        recommended_environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
        alone=True,
    ),
    Proof(
        "tuner-temporary-checkpoint",
        ends_with("Weights only load failed"),
        case="scale_batch_size",
        recommended_environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
        alone=True,
    ),
)
