from tests.support.programs import Program, ends_with, observes

PROGRAM = Program("last-checkpoint-without-links", "2.1.1", "pytorch-lightning")


def test_last_checkpoint_folder_is_a_copy():
    assert PROGRAM.shim("folder").facts == {"link": False, "step": 2}


test_last_checkpoint_is_a_link_if_links_are_supported = PROGRAM.unchanged(
    "links", on=("2.1.0",), check=observes({"link": True, "step": 2})
)


def test_last_checkpoint_is_a_copy_if_relative_links_fail():
    assert PROGRAM.shim(toggle="default,last-checkpoint-link-relative").facts == {"link": False, "step": 2}


PROOFS = PROGRAM.proofs(ends_with("Operation not permitted"), right=observes({"link": False, "step": 2}))
