"""PR 21186: last.ckpt, the only checkpoint yet, is replaced by a link to itself."""

import pytest

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, observes
from tests.support.variants import Variant, run


def test_link_to_another_file_stays_a_link():
    for shim in (False, True):
        result = run("last_checkpoint_link_to_itself", Variant("pytorch-lightning", "2.5.6", shim), "every")
        assert result.observations == [{"there": True, "linked": True, "step": 4}], result


@pytest.mark.parametrize("version", ["2.1.0", "2.1.4", "2.5.5"])
def test_program_without_links_sees_the_previous_checkpoint(version):
    assert not difference("asked_early", version, "last-checkpoint-link-to-itself")


PROOFS = (
    Proof(
        "last-checkpoint-link-to-itself",
        observes({"there": True, "linked": True, "step": None}),
        right=observes({"there": True, "linked": False, "step": 4}),
    ),
)
