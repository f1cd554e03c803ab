from tests.support.programs import Program, observes

PROGRAM = Program("checkpoint-kept-on-resume", "2.0.0")

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

test_files_in_other_directories_are_removed_as_on_stock = PROGRAM.unchanged("own")

PROOFS = PROGRAM.proofs(observes(DELETED), right=observes(KEPT))
