from tests.equivalence.proof import Proof, ends_with, observes

PROOFS = (
    Proof(
        "rich-empty-sanity-check",
        ends_with("assert self.val_sanity_progress_bar_id is not None"),
        right=observes({"steps": 2}),
    ),
)
