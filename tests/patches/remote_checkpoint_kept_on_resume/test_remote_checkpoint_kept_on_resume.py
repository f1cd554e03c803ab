"""Issue 21813: ModelCheckpoint deletes the remote checkpoint that the run was resumed from, in every release."""

import pytest

from tests.differential.trial import difference
from tests.equivalence.proof import Proof, only, sees
from tests.support.variants import Variant, run


def observed(variant, case=""):
    result = run("remote_checkpoint_kept_on_resume", variant, case)
    assert result.ok, result
    return result.observations[0]


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.6.6")])
def test_files_of_the_earlier_run_are_kept(distribution, version):
    stock = observed(Variant(distribution, version))
    assert stock["old"] == [] and not stock["resumed_from_exists"], stock

    shim = observed(Variant(distribution, version, shim=True))
    assert shim["old"] == ["epoch=0.ckpt"] and shim["new"] == ["epoch=2.ckpt"], shim
    assert shim["same_directory"] == ["epoch=0.ckpt", "epoch=2.ckpt"]


def test_they_are_those_that_remain_if_everything_is_kept():
    kept = observed(Variant("lightning", "2.6.6"), "keep-all")
    assert kept["old"] == ["epoch=0.ckpt"] and kept["resumed_from_exists"], kept
    assert observed(Variant("lightning", "2.6.6", shim=True), "keep-all") == kept


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.9"), ("lightning", "2.6.6")])
def test_path_of_a_custom_checkpoint_io_is_kept(distribution, version):
    """It ended the training: fsspec was asked for the scheme. What is kept is told by the callback's directory."""
    stock, shim = (observed(Variant(distribution, version, shim=on), "own-scheme") for on in (False, True))
    assert stock["same_directory"] == shim["same_directory"] == ["epoch=2.ckpt"]
    assert shim["old"] == ["epoch=0.ckpt"] and shim["new"] == stock["new"] == ["epoch=2.ckpt"]


def test_subclass_with_another_directory_removes_files_as_on_stock():
    assert not difference("remote", "2.6.6", "remote-checkpoint-kept-on-resume")


PROOFS = (
    Proof(
        "remote-checkpoint-kept-on-resume",
        sees(lambda seen: not seen["old"] and not seen["resumed_from_exists"]),
        observed=only("old", "resumed_from_exists"),
        recommended="keep-all",
    ),
)
