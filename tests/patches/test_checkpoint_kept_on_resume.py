"""PRs 18750, 19023: ModelCheckpoint deletes the checkpoint that the run was resumed from."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.arms import Arm, run

KEPT = {
    "same_directory": ["epoch=0.ckpt", "epoch=2.ckpt"],
    "other_directory": {"old": ["epoch=0.ckpt"], "new": ["epoch=2.ckpt"]},
    "copied": {"origin": ["epoch=0.ckpt"], "elsewhere": ["copy.ckpt"], "newer": ["epoch=2.ckpt"]},
}


def observed(arm):
    result = run("checkpoint_kept_on_resume", arm)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.1.2")])
def test_files_of_the_earlier_run_remain(distribution, version):
    stock = observed(Arm(distribution, version))
    assert stock["same_directory"] == ["epoch=2.ckpt"]
    assert stock["other_directory"] == {"old": [], "new": ["epoch=2.ckpt"]}
    assert stock["copied"] == {"origin": [], "elsewhere": ["copy.ckpt"], "newer": ["epoch=2.ckpt"]}

    assert observed(Arm(distribution, version, shim=True)) == KEPT


def test_official_fix_keeps_the_same():
    assert observed(Arm("lightning", "2.1.3")) == KEPT
    assert observed(Arm("lightning", "2.1.3", shim=True)) == KEPT


PROOFS = (
    Proof(
        "checkpoint-kept-on-resume",
        sees(lambda seen: "epoch=0.ckpt" not in seen["same_directory"] and not seen["other_directory"]["old"]),
    ),
)
