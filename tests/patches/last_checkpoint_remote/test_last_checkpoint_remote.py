"""Issue 18261: with checkpoints on a remote file system, ckpt_path="last" starts anew."""

import pytest

from tests.equivalence.proof import Proof, sees
from tests.support.variants import Variant, run


@pytest.mark.parametrize("case", ["local", "none", "timeless", "workaround"])
@pytest.mark.parametrize("version", ["2.1.0", "2.6.6"])
def test_program_that_needs_no_fix_is_unchanged(case, version):
    stock, shim = (run("last_checkpoint_remote", Variant("lightning", version, on), case) for on in (False, True))
    assert stock.ok and shim.observations == stock.observations, (stock, shim)
    assert stock.observations[0]["steps"][0] == (4 if case in ("local", "workaround") else 0)


PROOFS = (
    Proof(
        "last-checkpoint-remote",
        sees(lambda seen: seen["steps"] == list(range(8))),
        case="memory",
        recommended="explicit",
        right=sees(lambda seen: seen["steps"] == [4, 5, 6, 7]),
    ),
)
