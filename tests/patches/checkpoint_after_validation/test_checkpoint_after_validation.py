import pytest

from tests.support.programs import Program, sees

PROGRAM = Program("checkpoint-after-validation", "2.5.4", alone=True)
STALE, BEST = "step=6-score=100", "step=4-score=100"

# The validation is within the epoch, where 2.5.5 and later still save with the metric of the previous one.
test_checkpoint_has_the_metric_of_its_step = PROGRAM.fixed(
    "interval",
    on=("2.0.0", "2.5.4"),
    bug=sees(lambda seen: STALE in seen["files"]),
    right=sees(lambda seen: seen["best"] == BEST),
    reference="interval_recommended",
)


def test_save_is_not_lost_if_no_validation_follows():
    """Validations at steps 3 and 7; saves at steps 4, 6 and 8, and at step 3 the save that waited for the metric."""
    stock, shim = (list(result.facts["files"]) for result in PROGRAM.both("uneven"))
    assert stock == ["step=4-score=3", "step=6-score=3", "step=8-score=7"]
    assert shim == ["step=3-score=3", *stock]


@pytest.mark.parametrize(
    ("case", "steps"), [("last", {2: 2, 4: 100, 6: 6, 8: 8}), ("accumulated", {1: 1, 2: 2, 3: 3, 4: 100})]
)
def test_save_with_last_or_accumulation_waits_for_the_validation(case, steps):
    right = {f"step={step}-score={score}" for step, score in steps.items()}
    stock, shim = (set(result.facts["files"]) for result in PROGRAM.both(case))
    assert stock - {"last"} != right == shim - {"last"}
    assert ("last" in shim) is (case == "last")


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


test_other_checkpoints_are_unchanged = PROGRAM.unchanged(
    "epoch", "clock", "train_metric", "subclass", "upload", on=("2.0.0", "2.2.5"), distribution="pytorch-lightning"
)
test_misspelled_metric_is_still_an_error = PROGRAM.unchanged(
    "misspelled",
    check=lambda result: "could not find the monitored key" in result.observations[0]["error"],
    ends_well=False,
)

PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["best"] != BEST), "explicit", "before", right=sees(lambda seen: seen["best"] == BEST)
)
