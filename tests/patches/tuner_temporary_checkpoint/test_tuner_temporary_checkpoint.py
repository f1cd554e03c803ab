import pytest

from lightning_patches.patches.finders import tuner_temporary_checkpoint
from tests.equivalence.proof import Proof, ends_with
from tests.support.variants import Variant, run

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
    stock = run(SCENARIO, Variant(distribution, version), case)
    assert not stock.ok, stock
    assert ERROR in stock.output, stock
    shim = run(SCENARIO, Variant(distribution, version, shim=True), case, toggle=PATCH)
    assert shim.ok, shim
    assert shim.observations[0].get("unchanged", True), shim
    if unaffected is not None:
        official = run(SCENARIO, Variant(distribution, unaffected), case)
        assert official.ok, official
        assert shim.observations == official.observations, (shim, official)


def test_user_file_with_the_name_of_a_temporary_checkpoint_is_refused():
    shim = run(SCENARIO, Variant("lightning", "2.6.6", shim=True), "user_file", toggle=PATCH)
    assert not shim.ok, shim
    assert "1 fix" in shim.output, shim
    assert ERROR in shim.output, shim


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
@pytest.mark.parametrize("case", ["exchanged", "exchanged_error"])
def test_file_that_this_run_did_not_write_is_refused_by_default(version, case):
    """A user who can write to the directory during the search can't execute code, after success or failure."""
    for toggle in (None, "tuner-cleanup-on-error"):
        result = run(SCENARIO, Variant("lightning", version, shim=True), case, toggle=toggle)
        assert not result.ok and result.observations[0]["called"] is False, result
        if case == "exchanged_error":
            assert "in the middle of the search" in result.observations[0]["error"], result


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
def test_local_file_that_this_run_wrote_is_read_by_default(version):
    result = run(SCENARIO, Variant("lightning", version, shim=True), "lr_callback")
    assert result.ok, result


def test_explicit_weights_only_is_respected():
    """Upstream's master has this argument of lr_find; no release has it yet."""
    asked = []
    load = tuner_temporary_checkpoint._load(lambda *args, **kwargs: asked.append((args, kwargs)), "lightning")
    finder = "def _lr_find(load, ckpt_path, *args, **kwargs):\n    load(ckpt_path, None, *args, **kwargs)\n"
    module = {"__name__": "lightning.pytorch.tuner.lr_finder"}
    exec(finder, module)
    module["_lr_find"](load, ".lr_find_1.ckpt", True)
    module["_lr_find"](load, ".lr_find_1.ckpt", weights_only=True)
    assert asked == [((".lr_find_1.ckpt", None, True), {}), ((".lr_find_1.ckpt", None), {"weights_only": True})]


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
