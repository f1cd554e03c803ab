import pytest

from lightning_patches.patches.finders import tuner_temporary_checkpoint
from tests.support.programs import Program, ends_with, sees

PROGRAM = Program("tuner-temporary-checkpoint", "2.6.6", alone=True)
ERROR = "Weights only load failed"

test_lr_find_reads_its_own_checkpoint = PROGRAM.fixed(
    "lr_find", bug=ends_with(ERROR), right=sees(lambda seen: seen["unchanged"]), on=("2.0.0", "2.6.6")
)


def test_user_file_with_the_name_of_a_temporary_checkpoint_is_refused():
    shim = PROGRAM.shim("user_file")
    assert not shim.ok, shim
    assert "1 fix" in shim.output, shim
    assert ERROR in shim.output, shim


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
@pytest.mark.parametrize("case", ["exchanged", "exchanged_error"])
def test_file_that_this_run_did_not_write_is_refused_by_default(version, case):
    """A user who can write to the directory during the search can't execute code, after success or failure."""
    for toggle in ("default", "tuner-cleanup-on-error"):
        result = PROGRAM.shim(case, version, toggle=toggle)
        assert not result.ok and result.observations[0]["called"] is False, result
        if case == "exchanged_error":
            assert "in the middle of the search" in result.observations[0]["error"], result


@pytest.mark.parametrize("version", ["2.3.3", "2.6.6"])
def test_local_file_that_this_run_wrote_is_read_by_default(version):
    result = PROGRAM.shim("lr_callback", version, toggle="default")
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


PROOFS = PROGRAM.proofs(
    ends_with(ERROR),
    "lr_callback",
    "scale_batch_size",
    recommended_environment=(("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),),
    alone=True,
)
