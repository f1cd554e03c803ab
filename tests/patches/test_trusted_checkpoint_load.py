"""PR 20010: releases below 2.4.0 cannot load objects from checkpoints with torch 2.6 and later."""

import os

import pytest

from lightning_patches import trust, trust_checkpoints
from tests.equivalence.proof import Proof, ends_with, only
from tests.support.arms import Arm, run

REFUSED = "Weights only load failed"


@pytest.mark.parametrize(("distribution", "version"), [("pytorch-lightning", "2.0.0"), ("lightning", "2.3.3")])
def test_trusted_directory_loads(distribution, version):
    stock = run("trusted_checkpoint_load", Arm(distribution, version))
    assert not stock.ok and REFUSED in stock.output, stock

    shim = run("trusted_checkpoint_load", Arm(distribution, version, shim=True))
    assert shim.ok, shim
    assert shim.observations[0] == {"loaded": 3, "resumed": 6, "warnings": []}


def test_everything_else_is_refused_as_before():
    for case in ("untrusted", "link-out", "neighbour"):
        # In a program that did not write the file itself.
        toggle = "-own-checkpoint-load"
        result = run("trusted_checkpoint_load", Arm("lightning", "2.3.3", shim=True), case, toggle=toggle)
        assert not result.ok and REFUSED in result.output, (case, result)
        assert "loaded" not in result.observations[0]
        assert "trust_checkpoints(directory)" in result.observations[0]["warnings"][0]


def test_link_to_a_trusted_file_loads():
    result = run("trusted_checkpoint_load", Arm("lightning", "2.3.3", shim=True), "link-in")
    assert result.ok, result


def test_what_can_be_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(trust, "_trusted_directories", set())
    with pytest.raises(TypeError):
        trust_checkpoints(3)
    with pytest.raises(ValueError, match="existing directory"):
        trust_checkpoints(tmp_path / "none")
    with pytest.raises(ValueError, match="existing directory"):
        trust_checkpoints("")  # os.environ.get("CHECKPOINTS", "")
    with pytest.raises(ValueError, match="every file"):
        trust_checkpoints(os.path.abspath(os.sep))
    (tmp_path / "runs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    trust_checkpoints(tmp_path / "link")
    assert trust.trusted_checkpoint(str(tmp_path / "runs" / "a.ckpt")) == str(tmp_path / "runs" / "a.ckpt")
    assert trust.trusted_checkpoint(tmp_path / "runs" / ".." / "a.ckpt") == ""
    assert trust.trusted_checkpoint("https://example.org/a.ckpt") == ""


PROOFS = (Proof("trusted-checkpoint-load", ends_with(REFUSED), observed=only("loaded", "resumed")),)
