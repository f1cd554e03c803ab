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


class TestValLoader:
    """PR 17636."""

    @pytest.mark.parametrize("version", ["2.0.0", "2.0.2"])
    def test_validation_is_whole(self, version):
        stock = observed("lr_finder_val_loader", Arm("pytorch-lightning", version))
        assert stock["validated"] == [3, 3], stock
        shim = observed("lr_finder_val_loader", Arm("pytorch-lightning", version, shim=True), toggle=VAL)
        assert shim["validated"] == [8, 8]
        assert shim == observed("lr_finder_val_loader", Arm("pytorch-lightning", "2.0.3"))


class TestTrainLoader:
    """PR 21056."""

    name = "lr_finder_train_loader"

    @pytest.mark.parametrize(
        ("distribution", "version", "case", "left"),
        [
            ("lightning", "2.1.0", "workers", 10),
            ("pytorch-lightning", "2.5.2", "shuffle", 10),
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
    old = [[(1e-3).hex(), (5e-4).hex()]]

    @pytest.mark.parametrize("case", ["hparams", "step_lr", "lambda_lr"])
    def test_each_step_is_as_in_the_fixed_release(self, case):
        stock = observed(self.name, Arm("lightning", "2.5.3"), case)
        assert stock["rates"][:1] == self.old, stock
        assert stock["attribute"] != (1e-3).hex(), stock
        shim = observed(self.name, Arm("lightning", "2.5.3", shim=True), case, toggle=RATE)
        assert shim["rates"][0] == [stock["attribute"]] * 2
        assert shim == observed(self.name, Arm("lightning", "2.5.4"), case)

    def test_first_affected_release(self):
        stock = observed(self.name, Arm("pytorch-lightning", "2.0.0"), "callback")
        assert stock["rates"] == self.old * 32, stock
        assert stock["attribute"] != (1e-3).hex(), stock
        shim = observed(self.name, Arm("pytorch-lightning", "2.0.0", shim=True), "callback", toggle=TOGETHER)
        assert shim["rates"] == [[stock["attribute"]] * 2] * 32
        assert shim == observed(self.name, Arm("pytorch-lightning", "2.5.4"), "callback")

    @pytest.mark.parametrize("case", ["tuner", "no_update"])
    def test_where_nothing_was_wrong_nothing_changes(self, case):
        shim = observed(self.name, Arm("lightning", "2.5.3", shim=True), case, toggle=TOGETHER)
        assert shim == observed(self.name, Arm("lightning", "2.5.3"), case)

    @pytest.mark.distributed
    def test_on_two_ranks(self):
        stock = run(self.name, Arm("lightning", "2.5.3"), "ddp")
        assert [rank["rates"][0] for rank in stock.observations] == self.old * 2, stock
        shim = run(self.name, Arm("lightning", "2.5.3", shim=True), "ddp", toggle=TOGETHER)
        assert shim.ok, shim
        assert [rank["rates"][0] for rank in shim.observations] == [[stock.observations[0]["attribute"]] * 2] * 2
        assert shim.observations == run(self.name, Arm("lightning", "2.5.4"), "ddp").observations


STEPS = [f"train {step}" for step in range(10)]


PROOFS = (
    Proof(
        "lr-finder-applies-lr",
        sees(lambda seen: seen["rates"][:1] != [[seen["attribute"]] * 2]),
        case="callback",
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
    ),
    Proof(
        "lr-finder-train-loader",
        sees(lambda seen: seen["batches"]["0"] < 16 and "0" not in seen["validated"]),
        case="shuffle",
    ),
    Proof(
        "lr-finder-val-loader",
        sees(lambda seen: any(count < 8 for count in seen["validated"])),
    ),
)
