"""PR 18942: last.ckpt must be a link, but the file system refuses links."""

import pytest

from tests.equivalence.proof import Proof, ends_with, observes
from tests.support.variants import Variant, run


def seen(version, case, shim, toggle=None):
    result = run("last_checkpoint_without_links", Variant("pytorch-lightning", version, shim), case, toggle=toggle)
    assert result.ok, result
    return result.observations[0]


def test_folder_is_copied():
    assert seen("2.1.1", "folder", True) == {"link": False, "step": 2}


@pytest.mark.parametrize("shim", [False, True])
def test_last_checkpoint_is_a_link_if_links_are_supported(shim):
    assert seen("2.1.0", "links", shim) == {"link": True, "step": 2}


def test_last_checkpoint_is_a_copy_if_relative_links_fail():
    toggle = "default,last-checkpoint-link-relative"
    assert seen("2.1.1", "", True, toggle) == {"link": False, "step": 2}


PROOFS = (
    Proof(
        "last-checkpoint-without-links",
        ends_with("Operation not permitted"),
        right=observes({"link": False, "step": 2}),
    ),
)
