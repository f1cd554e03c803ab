from tests.equivalence.proof import proofs, sees
from tests.support.programs import Program
from tests.support.variants import Variant, run

PROGRAM = Program(
    "lr-finder-restarting-flag",
    "2.6.6",
    toggle="lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr",
)

TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"
STEPS = [f"train {step}" for step in range(10)]
PROOFS = proofs(
    "lr-finder-restarting-flag",
    sees(lambda seen: seen["events"][0] == "validate 0"),
    observed=lambda ranks: [[e for e in rank["events"] if e in STEPS or e == "validate 0"] for rank in ranks],
    note="later validations and weights: 2.3.0 has the bug of lr-finder-train-loader, which 2.0 has not",
)


def observed(variant, case="", toggle="default"):
    result = run("lr_finder_restarting_flag", variant, case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


def test_patch_alone_equals_the_first_fixed_release():
    stock = observed(Variant("lightning", "2.2.5"))
    assert stock["events"][0] == "validate 0", stock
    shim = observed(Variant("lightning", "2.2.5", shim=True), toggle="lr-finder-restarting-flag")
    assert shim == observed(Variant("lightning", "2.3.0"))
    assert shim["events"][0] == "train 0"


def test_all_finder_patches_equal_the_newest_release():
    newest = observed(Variant("pytorch-lightning", "2.6.6"))
    assert newest["events"] == [f"train {i}" for i in range(8)] + ["validate 8", "train 8", "train 9"]
    for distribution, version in (("pytorch-lightning", "2.0.0"), ("lightning", "2.2.5")):
        if version == "2.0.0":
            stock = observed(Variant(distribution, version))
            assert stock["events"][0] == "validate 0", stock
        assert observed(Variant(distribution, version, shim=True), toggle=TOGETHER) == newest


def test_each_finder_patch_fixes_its_bug_alone():
    variant = Variant("lightning", "2.2.5", shim=True)
    shim = observed(variant, toggle=f"{TOGETHER},-lr-finder-train-loader")
    assert shim["events"] == [f"train {i}" for i in range(10)] + ["validate 10"]


def test_fixed_release_is_unchanged():
    result = PROGRAM.shim()
    assert result.ok, result
    assert "fix" not in result.output, result
