"""Pull request 21016: since rich 14.1 a RichProgressBar up to Lightning 2.5.2 ends the run before its first batch."""

from tests.equivalence.proof import Proof, only, sees

ERROR = "IndexError: pop from empty list"
PROOFS = (
    Proof(
        "rich-progress-bar",
        lambda result: not result.ok and sees(lambda seen: seen.get("error") == ERROR)(result),
        observed=only("bars", "weights", "epochs"),
        right=sees(lambda seen: seen["epochs"] == 3),
    ),
)
