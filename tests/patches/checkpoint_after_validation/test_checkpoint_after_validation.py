import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.programs import Program
from tests.support.variants import Variant, run

NAME = "checkpoint-after-validation"
PROGRAM = Program(NAME, "2.5.4", alone=True)
STALE, BEST = "step=6-score=100", "step=4-score=100"


def observed(variant, case):
    result = run("checkpoint_after_validation", variant, case, toggle=NAME)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.5.4")])
def test_checkpoint_has_the_metric_of_its_step(distribution, version):
    """A validation within the epoch, at which 2.5.5 and later still save with the metric of the one before."""
    assert STALE in observed(Variant(distribution, version), "interval")["files"]
    expected = observed(Variant(distribution, version), "interval_recommended")
    assert expected["best"] == BEST
    assert observed(Variant(distribution, version, shim=True), "interval") == expected


@pytest.mark.parametrize("case", ["explicit", "before"])
def test_result_equals_the_official_fix(case):
    stock = observed(Variant("lightning", "2.5.4"), case)
    assert stock["best"] != BEST
    official = observed(Variant("lightning", "2.5.5"), case)
    assert official["best"] == BEST
    assert observed(Variant("lightning", "2.5.4", shim=True), case) == official
    assert observed(Variant("lightning", "2.5.5", shim=True), case) == official


def test_save_is_not_lost_if_no_validation_follows():
    """Validations at steps 3 and 7; saves at steps 4, 6 and 8, and the first that waited for the metric."""
    files = list(observed(Variant("lightning", "2.5.4"), "uneven")["files"])
    assert files == ["step=4-score=3", "step=6-score=3", "step=8-score=7"]
    shim = list(observed(Variant("lightning", "2.5.4", shim=True), "uneven")["files"])
    assert shim == ["step=3-score=3", "step=4-score=3", "step=6-score=3", "step=8-score=7"]


@pytest.mark.parametrize(
    ("version", "case", "steps"),
    [("2.5.4", "last", {2: 2, 4: 100, 6: 6, 8: 8}), ("2.5.4", "accumulated", {1: 1, 2: 2, 3: 3, 4: 100})],
)
def test_other_triggers_save_as_on_stock(version, case, steps):
    right = {f"step={step}-score={score}" for step, score in steps.items()}
    assert set(observed(Variant("lightning", version), case)["files"]) - {"last"} != right
    files = observed(Variant("lightning", version, shim=True), case)["files"]
    assert set(files) - {"last"} == right
    assert ("last" in files) is (case == "last")


@pytest.mark.distributed
def test_ranks_defer_the_same_saves():
    stock = PROGRAM.stock("ranks")
    assert [STALE in seen["files"] for seen in stock.observations] == [True, True], stock
    shim = PROGRAM.shim("ranks")
    assert shim.ok, shim
    steps = {2: 2, 4: 100, 6: 6, 8: 8}
    files = {f"step={step}-score={score}": [step, float(-step).hex()] for step, score in steps.items()}
    assert [seen["files"] for seen in shim.observations] == [files, files]
    assert [seen["best"] for seen in shim.observations] == [BEST, BEST]


@pytest.mark.parametrize("version", ["2.0.0", "2.2.5"])
@pytest.mark.parametrize("case", ["epoch", "clock", "train_metric", "subclass", "upload"])
def test_other_checkpoints_are_unchanged(version, case):
    variants = (Variant("pytorch-lightning", version, shim=shim) for shim in (True, False))
    shim, stock = (observed(variant, case) for variant in variants)
    assert shim == stock


def test_misspelled_metric_is_still_an_error():
    variants = (Variant("lightning", "2.5.4", shim=shim) for shim in (False, True))
    stock, shim = (run("checkpoint_after_validation", variant, "misspelled", toggle=NAME) for variant in variants)
    assert not stock.ok and "could not find the monitored key" in stock.observations[0]["error"]
    assert not shim.ok and shim.observations == stock.observations


PROOFS = tuple(
    Proof(
        "checkpoint-after-validation",
        sees(lambda seen: seen["best"] != BEST),
        case=case,
        right=sees(lambda seen: seen["best"] == BEST),
    )
    for case in ("explicit", "before")
)
