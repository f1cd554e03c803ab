import pytest

from tests.support.programs import Program

PROGRAM = Program("warn-resumed-run", "2.6.6", "pytorch-lightning", alone=True)

OLD, NEW = "2.2.5", "2.6.6"

DIFFERENCES = {
    "plain: within": {OLD: "Batch 2 of the epoch counts twice", NEW: "on_train_epoch_start is not called for the rest"},
    "plain: validation": {OLD: "The run first repeats the last validation on one batch"},
    "plain: last batch": {
        "2.0.0": "Batch 4 of the epoch counts twice",
        NEW: "The validation and on_train_epoch_end of",
    },
    "validated every two batches: within": {"2.5.0": "after batch 2 is left out", NEW: "after batch 2 is left out"},
    "max_steps: epoch end": {OLD: "The end of the last epoch is run again", NEW: "The end of the last epoch is run"},
    "GradientAccumulationScheduler: within": {NEW: "have no effect until the next epoch"},
    "StepLR by epoch: validation": {OLD: "Schedulers with interval='epoch' step twice"},
    "plateau by epoch: epoch end": {OLD: "ReduceLROnPlateau misses its step", NEW: "ReduceLROnPlateau misses its step"},
    "plateau by step on a validation metric: epoch end": {NEW: "has no value of its metric until it is logged again"},
    "EarlyStopping: validation": {NEW: "EarlyStopping has no value of a metric that was logged before"},
    "reload every two epochs: epoch end": {OLD: "creates data loaders in other epochs", NEW: "data loaders in other"},
    "stateful: epoch end": {NEW: "The data loaders do not get their state back"},
    "stateful stream: within": {NEW: "A batch that was fetched ahead when the checkpoint was saved is lost"},
    "BackboneFinetuning from the start: epoch end": {NEW: "unfrozen the backbone, which is frozen again"},
    "ModelPruning: epoch end": {NEW: "Weights that ModelPruning had pruned are trained again"},
    "64-true: epoch end": {NEW: "All weights were rounded to float32"},
    "max_steps, finished at an epoch's end: epoch end": {NEW: "trainer.current_epoch is one lower"},
    "search": {
        OLD: "The search of LearningRateFinder has dropped",
        NEW: "The search of LearningRateFinder has dropped",
    },
    "stopped": {OLD: "EarlyStopping had stopped the run", NEW: "EarlyStopping had stopped the run"},
    "again": {NEW: "EarlyStopping had stopped the run"},
    "unasked": {OLD: "saved/on_exception.ckpt', although you passed no", NEW: "although you passed no ckpt_path"},
}

WITHOUT_FIX = ("stopped", "again", "unasked")


@pytest.mark.parametrize(
    ("version", "case", "says"),
    [(version, case, says) for case, releases in DIFFERENCES.items() for version, says in releases.items()],
)
def test_difference_is_in_the_only_warning(version, case, says):
    stock, shim = (result.facts for result in PROGRAM.both(case, version))
    (warning,) = shim.pop("warnings")
    stock.pop("warnings")
    assert shim == stock and warning.startswith("Lightning does not resume this run exactly. ") and says in warning
    assert (
        warning.endswith(" Set LIGHTNING_PATCHES=default,exact-resume.") or case in WITHOUT_FIX or "not called" in says
    )


@pytest.mark.parametrize(
    ("version", "case"),
    [
        (version, case)
        for case, releases in DIFFERENCES.items()
        for version in releases
        if case not in WITHOUT_FIX and (case, version) != ("plain: within", NEW)
    ],
)
def test_difference_that_a_patch_prevents_is_not_in_a_warning(version, case):
    shim = PROGRAM.shim(case, version, toggle="default,exact-resume")
    assert shim.ok and not [one for one in shim.facts["warnings"] if DIFFERENCES[case][version] in one], shim
