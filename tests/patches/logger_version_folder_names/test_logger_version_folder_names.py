from tests.equivalence.proof import Proof, ends_with, observes

PROOFS = tuple(
    Proof(
        "logger-version-folder-names",
        ends_with("ValueError: invalid literal for int() with base 10: 'best'"),
        case=case,
        right=observes({"version": 1}),
    )
    for case in ("", "pytorch-tensorboard", "fabric-tensorboard")
)
