import pytest

from tests.differential.trial import difference
from tests.support.programs import Program, observes

PROGRAM = Program("last-checkpoint-link-to-itself", "2.5.6", "pytorch-lightning")

test_link_to_another_file_stays_a_link = PROGRAM.unchanged(
    "every", check=observes({"there": True, "linked": True, "step": 4})
)


@pytest.mark.parametrize("version", ["2.1.0", "2.1.4", "2.5.5"])
def test_program_without_links_sees_the_previous_checkpoint(version):
    assert not difference("asked_early", version, "last-checkpoint-link-to-itself")


PROOFS = PROGRAM.proofs(
    observes({"there": True, "linked": True, "step": None}), right=observes({"there": True, "linked": False, "step": 4})
)
