from tests.equivalence.proof import ends_with, observes, proofs

PROOFS = proofs(
    "rich-empty-sanity-check",
    ends_with("assert self.val_sanity_progress_bar_id is not None"),
    right=observes({"steps": 2}),
)
