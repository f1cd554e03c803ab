import pytest

from tests.differential.trial import difference
from tests.support.programs import Program, only, sees

PROGRAM = Program("remote-checkpoint-kept-on-resume", "2.6.6")

test_files_are_unchanged_if_every_checkpoint_is_kept = PROGRAM.unchanged(
    "keep-all", check=sees(lambda seen: seen["old"] == ["epoch=0.ckpt"] and seen["resumed_from_exists"])
)


@pytest.mark.parametrize("version", ["2.0.9", "2.6.6"])
def test_checkpoint_with_a_custom_scheme_is_kept(version):
    """fsspec does not know the scheme, so it must not be called with this path."""
    stock, shim = (result.facts for result in PROGRAM.both("own-scheme", version))
    assert stock["same_directory"] == shim["same_directory"] == ["epoch=2.ckpt"]
    assert shim["old"] == ["epoch=0.ckpt"] and shim["new"] == stock["new"] == ["epoch=2.ckpt"]


def test_subclass_with_another_directory_removes_files_as_on_stock():
    assert not difference("remote", "2.6.6", "remote-checkpoint-kept-on-resume")


PROOFS = PROGRAM.proofs(
    sees(lambda seen: not seen["old"] and not seen["resumed_from_exists"]),
    recommended="keep-all",
    observed=only("old", "resumed_from_exists"),
    right=sees(lambda seen: (seen["new"], seen["same_directory"]) == (["epoch=2.ckpt"], [*seen["old"], *seen["new"]])),
)
