"""PRs 18750, 19023: ModelCheckpoint deletes the checkpoint that the run was resumed from."""

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run

DELETED = {
    "same_directory": ["epoch=2.ckpt"],
    "other_directory": {"old": [], "new": ["epoch=2.ckpt"]},
    "copied": {"origin": [], "elsewhere": ["copy.ckpt"], "newer": ["epoch=2.ckpt"]},
}
KEPT = {
    "same_directory": ["epoch=0.ckpt", "epoch=2.ckpt"],
    "other_directory": {"old": ["epoch=0.ckpt"], "new": ["epoch=2.ckpt"]},
    "copied": {"origin": ["epoch=0.ckpt"], "elsewhere": ["copy.ckpt"], "newer": ["epoch=2.ckpt"]},
}


def test_files_in_other_directories_are_removed_as_on_stock():
    stock, shim = (
        run("checkpoint_kept_on_resume", Variant("pytorch-lightning", "2.0.0", on), "own") for on in (False, True)
    )
    assert stock.ok and shim.observations == stock.observations, (stock, shim)


PROOFS = (Proof("checkpoint-kept-on-resume", observes(DELETED), right=observes(KEPT)),)
