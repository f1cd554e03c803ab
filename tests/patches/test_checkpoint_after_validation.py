"""PR 21106, issues 20185, 17417: ModelCheckpoint ranks and names a checkpoint by the validation before it."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

NAME = "checkpoint-after-validation"
STALE, BEST = "step=6-score=100", "step=4-score=100"


def observed(arm, case):
    result = run("checkpoint_after_validation", arm, case, toggle=NAME)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.6.6")])
@pytest.mark.parametrize("case", ["epoch", "interval"])
def test_the_metric_is_that_of_the_step(distribution, version, case):
    stock = observed(Arm(distribution, version), case)
    assert {"step=8-score=100", STALE} & set(stock["files"])

    expected = observed(Arm(distribution, version), f"{case}_recommended")
    assert expected["best"] == BEST
    assert observed(Arm(distribution, version, shim=True), case) == expected


@pytest.mark.parametrize("case", ["explicit", "before"])
def test_as_the_official_fix_where_it_reaches(case):
    stock = observed(Arm("lightning", "2.5.4"), case)
    assert stock["best"] != BEST
    official = observed(Arm("lightning", "2.5.5"), case)
    assert official["best"] == BEST
    assert observed(Arm("lightning", "2.5.4", shim=True), case) == official
    assert observed(Arm("lightning", "2.5.5", shim=True), case) == official


@pytest.mark.parametrize("version", ["2.5.4", "2.6.6"])
def test_no_save_is_lost_to_a_validation_that_does_not_follow(version):
    """Validations at steps 3 and 7; saves at steps 4, 6 and 8, and the first that waited for the metric."""
    files = list(observed(Arm("lightning", version), "uneven")["files"])
    if version == "2.5.4":
        assert files == ["step=4-score=3", "step=6-score=3", "step=8-score=7"]
    else:
        assert files == ["step=3-score=3", "step=6-score=3", "step=7-score=7"]
    shim = list(observed(Arm("lightning", version, shim=True), "uneven")["files"])
    assert shim == ["step=3-score=3", "step=4-score=3", "step=6-score=3", "step=8-score=7"]


@pytest.mark.parametrize(
    ("version", "case", "steps"),
    [
        ("2.5.4", "last", {2: 2, 4: 100, 6: 6, 8: 8}),
        ("2.6.6", "accumulated", {1: 1, 2: 2, 3: 3, 4: 100}),
        ("2.0.0", "clock", {2: 2, 3: 2, 4: 100, 5: 100, 6: 6, 7: 6, 8: 8}),
    ],
)
def test_other_ways_to_save(version, case, steps):
    right = {f"step={step}-score={score}" for step, score in steps.items()}
    assert set(observed(Arm("pytorch-lightning", version), case)["files"]) - {"last"} != right
    files = observed(Arm("pytorch-lightning", version, shim=True), case)["files"]
    assert set(files) - {"last"} == right
    assert ("last" in files) is (case == "last")


@pytest.mark.distributed
def test_ranks_put_off_the_same_saves():
    stock = run("checkpoint_after_validation", Arm("lightning", "2.5.4"), "ranks")
    assert [STALE in seen["files"] for seen in stock.observations] == [True, True], stock
    shim = run("checkpoint_after_validation", Arm("lightning", "2.5.4", shim=True), "ranks", toggle=NAME)
    assert shim.ok, shim
    steps = {2: 2, 3: 2, 4: 100, 5: 100, 6: 6, 7: 6, 8: 8}
    files = {f"step={step}-score={score}": [step, float(-step).hex()] for step, score in steps.items()}
    assert [seen["files"] for seen in shim.observations] == [files, files]
    assert [seen["best"] for seen in shim.observations] == [BEST, BEST]


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
@pytest.mark.parametrize("case", ["train_metric", "subclass", "manual", "upload", "average", "average_callback"])
def test_what_is_none_of_its_business_stays(version, case):
    assert observed(Arm("lightning", version, shim=True), case) == observed(Arm("lightning", version), case)


@pytest.mark.parametrize("version", ["2.2.5", "2.6.6"])
@pytest.mark.parametrize("case", ["train_fails", "fails", "interrupted"])
def test_a_save_is_not_lost_with_the_validation_that_it_waits_for(version, case):
    stock, shim = (observed(Arm("lightning", version, shim=with_it), case) for with_it in (False, True))
    assert shim.get("ended") == stock.get("ended")
    assert set(stock["files"]) - {"last"} <= set(shim["files"])
    score = 3 if case == "train_fails" else 2  # the last one known, as in the stock release
    assert shim["files"][f"step=4-score={score}"] == [4, (-4.0).hex()]
    if case != "interrupted":
        assert shim["files"]["last"] == [4, (-4.0).hex()]
    if case == "train_fails" and version == "2.2.5":
        assert shim == stock


@pytest.mark.parametrize("version", ["2.2.5", "2.5.2"])
def test_an_epoch_ends_once_where_a_fit_is_resumed(version):
    first = observed(Arm("lightning", version, shim=True), "resumed")
    assert "step=4-score=100" in first["files"]
    assert first["ended"] == [1]


def test_a_misspelled_metric_is_still_an_error():
    arms = (Arm("lightning", "2.5.4", shim=shim) for shim in (False, True))
    stock, shim = (run("checkpoint_after_validation", arm, "misspelled", toggle=NAME) for arm in arms)
    assert not stock.ok and "could not find the monitored key" in stock.observations[0]["error"]
    assert not shim.ok and shim.observations == stock.observations


PROOFS = (
    Proof(
        "checkpoint-after-validation",
        sees(lambda seen: "step=8-score=100" in seen["files"]),
        case="epoch",
        recommended="epoch_recommended",
    ),
    Proof(
        "checkpoint-after-validation",
        sees(lambda seen: STALE in seen["files"]),
        case="interval",
        recommended="interval_recommended",
    ),
)
