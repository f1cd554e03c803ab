"""PR 17948: under DDP an error that is not made of text is replaced by another one."""

from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run


def test_error_with_a_message_is_unchanged():
    for shim in (False, True):
        result = run("error_kept_in_ddp", Variant("pytorch-lightning", "2.0.4", shim), "text")
        assert result.observations == [{"error": "ValueError: a text"}]


PROOFS = (
    Proof(
        "error-kept-in-ddp",
        lambda result: "TypeError: expected string or bytes-like object" in result.observations[0]["error"],
        right=observes({"error": "KeyError: 3"}),
    ),
)
