"""What the learning rate finder leaves behind for the training that follows it: four patches around ``_lr_find``."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

FLAG, VAL, TRAIN, RATE = (
    "lr-finder-restarting-flag",
    "lr-finder-val-loader",
    "lr-finder-train-loader",
    "lr-finder-applies-lr",
)
TOGETHER = ",".join((FLAG, VAL, TRAIN, RATE))
INITIAL = (1e-3).hex()
OLD_RATES = [[INITIAL, (5e-4).hex()]]


def observed(name, arm, case="", toggle=None):
    result = run(name, arm, case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


class TestRestartingFlag:
    """Issue 19818."""

    name = "lr_finder_restarting_flag"

    def test_alone_it_does_what_the_first_fixed_release_does(self):
        stock = observed(self.name, Arm("lightning", "2.2.5"))
        assert stock["events"][0] == "validate 0", stock
        shim = observed(self.name, Arm("lightning", "2.2.5", shim=True), toggle=FLAG)
        assert shim == observed(self.name, Arm("lightning", "2.3.0"))
        assert shim["events"][0] == "train 0"

    def test_together_they_do_what_the_newest_release_does(self):
        newest = observed(self.name, Arm("pytorch-lightning", "2.6.6"))
        assert newest["events"] == [f"train {i}" for i in range(8)] + ["validate 8", "train 8", "train 9"]
        for distribution, version in (("pytorch-lightning", "2.0.0"), ("lightning", "2.2.5")):
            if version == "2.0.0":
                stock = observed(self.name, Arm(distribution, version))
                assert stock["events"][0] == "validate 0", stock
            assert observed(self.name, Arm(distribution, version, shim=True), toggle=TOGETHER) == newest

    def test_without_one_of_them_the_others_still_work(self):
        arm = Arm("lightning", "2.2.5", shim=True)
        shim = observed(self.name, arm, toggle=f"{TOGETHER},-{TRAIN}")
        assert shim["events"] == [f"train {i}" for i in range(10)] + ["validate 10"]

    def test_fixed_release_is_left_alone(self):
        result = run(self.name, Arm("lightning", "2.6.6", shim=True), toggle=TOGETHER)
        assert result.ok, result
        assert "fix" not in result.output, result


class TestTrainLoader:
    """PR 21056."""

    name = "lr_finder_train_loader"

    @pytest.mark.parametrize(
        ("distribution", "version", "case", "left"),
        [
            ("lightning", "2.1.0", "workers", 10),
            ("lightning", "2.3.3", "milestones", 10),
        ],
    )
    def test_first_epoch_is_whole(self, distribution, version, case, left):
        stock = observed(self.name, Arm(distribution, version), case)
        assert stock["batches"]["0"] == left, stock
        assert "0" not in stock["validated"], stock
        shim = observed(self.name, Arm(distribution, version, shim=True), case, toggle=TRAIN)
        assert shim["batches"] == {"0": 16, "1": 16, "2": 16, "3": 16}
        assert shim["validated"] == {"0": 4, "1": 4, "2": 4, "3": 4}
        assert shim == observed(self.name, Arm(distribution, "2.5.3"), case)

    @pytest.mark.distributed
    def test_on_two_ranks(self):
        stock = run(self.name, Arm("lightning", "2.4.0"), "ddp")
        assert stock.ok, stock
        assert [rank["batches"]["0"] for rank in stock.observations] == [5, 5], stock
        shim = run(self.name, Arm("lightning", "2.4.0", shim=True), "ddp", toggle=TOGETHER)
        assert shim.ok, shim
        assert [rank["batches"]["0"] for rank in shim.observations] == [8, 8], shim
        assert shim.observations == run(self.name, Arm("lightning", "2.5.3"), "ddp").observations


class TestAppliesLearningRate:
    """PR 21068."""

    name = "lr_finder_applies_lr"

    @pytest.mark.parametrize("case", ["hparams", "step_lr", "lambda_lr"])
    def test_each_step_is_as_in_the_fixed_release(self, case):
        stock = observed(self.name, Arm("lightning", "2.5.3"), case)
        assert stock["rates"][:1] == OLD_RATES, stock
        assert stock["attribute"] != INITIAL, stock
        shim = observed(self.name, Arm("lightning", "2.5.3", shim=True), case, toggle=RATE)
        assert shim["rates"][0] == [stock["attribute"]] * 2
        assert shim == observed(self.name, Arm("lightning", "2.5.4"), case)

    def test_groups_that_had_rates_of_their_own_are_named(self):
        shim = observed(self.name, Arm("lightning", "2.5.3", shim=True), "groups", toggle=RATE)
        (said,) = shim.pop("warnings")
        assert "they had 0.0005, 0.001." in said and "Tuner.lr_find" in said
        official = observed(self.name, Arm("lightning", "2.5.4"), "groups")
        assert official.pop("warnings") == []
        assert shim == official

    def test_nothing_is_said_where_the_search_comes_before_the_fit(self):
        """Tuner.lr_find, as the warning recommends: the fit makes its optimizers anew, and each group has its rate."""
        shim = observed(self.name, Arm("lightning", "2.5.3", shim=True), "groups_tuner", toggle=RATE)
        assert shim["warnings"] == [] and shim["rates"][0] == [shim["attribute"], *OLD_RATES[0][1:]]
        assert shim == observed(self.name, Arm("lightning", "2.5.3"), "groups_tuner")

    @pytest.mark.parametrize("case", ["tuner", "no_update"])
    def test_where_nothing_was_wrong_nothing_changes(self, case):
        shim = observed(self.name, Arm("lightning", "2.5.3", shim=True), case, toggle=TOGETHER)
        assert shim == observed(self.name, Arm("lightning", "2.5.3"), case)

    @pytest.mark.distributed
    def test_on_two_ranks(self):
        stock = run(self.name, Arm("lightning", "2.5.3"), "ddp")
        assert [rank["rates"][0] for rank in stock.observations] == OLD_RATES * 2, stock
        shim = run(self.name, Arm("lightning", "2.5.3", shim=True), "ddp", toggle=TOGETHER)
        assert shim.ok, shim
        assert [rank["rates"][0] for rank in shim.observations] == [[stock.observations[0]["attribute"]] * 2] * 2
        assert shim.observations == run(self.name, Arm("lightning", "2.5.4"), "ddp").observations


def _whole(seen):
    """Every epoch has all batches, and ends with a whole validation."""
    epochs = "0", "1", "2", "3"
    return seen["batches"] == dict.fromkeys(epochs, 16) and seen["validated"] == dict.fromkeys(epochs, 4)


STEPS = [f"train {step}" for step in range(10)]


PROOFS = (
    Proof(
        "lr-finder-applies-lr",
        sees(lambda seen: seen["rates"] == OLD_RATES * len(seen["rates"]) and seen["attribute"] != INITIAL),
        case="callback",
        right=sees(lambda seen: seen["rates"] == [[seen["attribute"]] * 2] * 32),
    ),
    Proof(
        "lr-finder-restarting-flag",
        sees(lambda seen: seen["events"][0] == "validate 0"),
        observed=lambda ranks: [[e for e in rank["events"] if e in STEPS or e == "validate 0"] for rank in ranks],
        note="later validations and weights: 2.3.0 has the bug of lr-finder-train-loader, which 2.0 has not",
    ),
    Proof(
        "lr-finder-train-loader",
        sees(lambda seen: seen["batches"]["0"] < 16 and "0" not in seen["validated"]),
        case="callback",
        right=sees(_whole),
    ),
    Proof(
        "lr-finder-train-loader",
        sees(lambda seen: seen["batches"]["0"] == 10 and "0" not in seen["validated"]),
        case="shuffle",
        right=sees(_whole),
    ),
    Proof(
        "lr-finder-val-loader",
        sees(lambda seen: seen["validated"] == [3, 3]),
        right=sees(lambda seen: seen["validated"] == [8, 8]),
    ),
)
