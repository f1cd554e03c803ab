from tests.equivalence.proof import ends_with, observes, proofs

PROOFS = proofs(
    "logger-version-folder-names",
    ends_with("ValueError: invalid literal for int() with base 10: 'best'"),
    "",
    "pytorch-tensorboard",
    "fabric-tensorboard",
    right=observes({"version": 1}),
)
