from tests.support.programs import Program, sees

TOGETHER = "lr-finder-restarting-flag,lr-finder-val-loader,lr-finder-train-loader,lr-finder-applies-lr"
PROGRAM = Program("lr-finder-restarting-flag", "2.2.5", toggle=TOGETHER)
STEPS = [f"train {step}" for step in range(10)]
PROOFS = PROGRAM.proofs(
    sees(lambda seen: seen["events"][0] == "validate 0"),
    observed=lambda ranks: [[e for e in rank["events"] if e in STEPS or e == "validate 0"] for rank in ranks],
    note="later validations and weights: 2.3.0 has the bug of lr-finder-train-loader, which 2.0 has not",
)


test_patch_alone_equals_the_first_fixed_release = PROGRAM.fixed(
    bug=sees(lambda seen: seen["events"][0] == "validate 0"), like="2.3.0", toggle="lr-finder-restarting-flag"
)


def test_all_finder_patches_equal_the_newest_release():
    newest = PROGRAM.stock(version="2.6.6").facts
    assert newest["events"] == [f"train {i}" for i in range(8)] + ["validate 8", "train 8", "train 9"]
    for version in ("2.0.0", "2.2.5"):
        assert PROGRAM.shim(version=version).facts == newest


def test_each_finder_patch_fixes_its_bug_alone():
    shim = PROGRAM.shim(toggle=f"{TOGETHER},-lr-finder-train-loader")
    assert shim.facts["events"] == [f"train {i}" for i in range(10)] + ["validate 10"]


def test_fixed_release_is_unchanged():
    result = PROGRAM.shim(version="2.6.6")
    assert result.ok, result
    assert "fix" not in result.output, result
