"""PR 17072: ckpt_path="last" takes any file with "last" in its name."""

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run


def test_renamed_checkpoint_is_found_as_on_stock():
    for shim in (False, True):
        result = run("last_checkpoint_by_extension", Variant("pytorch-lightning", "2.1.2", shim), "byhand")
        assert result.observations == [{"steps": 3}], result


PROOFS = (
    Proof(
        "last-checkpoint-by-extension",
        ends_with("UnpicklingError"),
        right=observes({"steps": 3}),
    ),
)
